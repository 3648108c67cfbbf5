#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace delayq::journal {

/// Memory in large pages from the system, given out piece by piece and returned as a whole. Thousands of
/// small pages would take longer at a start than all that is written into them.
class LargePages {
 public:
  LargePages() = default;
  LargePages(const LargePages&) = delete;
  LargePages& operator=(const LargePages&) = delete;
  ~LargePages() { clear(); }

  /// Aligned to 8 bytes, all zeros. REQUIRES: bytes <= kChunkBytes.
  char* allocate(size_t bytes);
  /// Returns all of it to the system.
  void clear();
  uint64_t memory_bytes() const { return chunks_.size() * kChunkBytes; }

  static constexpr size_t kChunkBytes = size_t{8} << 20;

 private:
  std::vector<char*> chunks_;
  size_t used_ = kChunkBytes;  ///< of the last chunk
};

/// A text of up to `kInline` bytes without an allocation.
template <size_t kInline>
class ShortText {
 public:
  ShortText() = default;
  ShortText(const ShortText&) = delete;
  ShortText& operator=(const ShortText&) = delete;

  std::string_view view() const { return {heap_ != nullptr ? heap_.get() : inline_, size_}; }
  void assign(std::string_view text) {
    if (text.size() > kInline) {
      heap_ = std::make_unique<char[]>(text.size());
    } else {
      heap_.reset();
    }
    text.copy(heap_ != nullptr ? heap_.get() : inline_, text.size());
    size_ = static_cast<uint32_t>(text.size());
  }
  uint64_t memory_bytes() const { return heap_ != nullptr ? size_ : 0; }

 private:
  std::unique_ptr<char[]> heap_;
  uint32_t size_ = 0;
  char inline_[kInline];
};

}  // namespace delayq::journal
