#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

namespace delayq::journal {

/// Growing bytes that are not zeroed first: a commit's records are built in one.
class ByteBuffer {
 public:
  /// Room for `size` more bytes at the end. Valid until the next call.
  std::span<std::byte> extend(size_t size) {
    if (size > capacity_ - size_) grow(size_ + size);
    const std::span<std::byte> room{bytes_.get() + size_, size};
    size_ += size;
    return room;
  }

  size_t size() const { return size_; }
  std::span<std::byte> all() { return {bytes_.get(), size_}; }
  std::span<const std::byte> all() const { return {bytes_.get(), size_}; }

  /// Empty again. A buffer that was unusually large gives its memory back.
  void clear() {
    size_ = 0;
    if (capacity_ > kKeep) {
      bytes_.reset();
      capacity_ = 0;
    }
  }

 private:
  static constexpr size_t kFirst = 4096;
  static constexpr size_t kKeep = 4u << 20;

  void grow(size_t needed) {
    size_t capacity = capacity_ == 0 ? kFirst : capacity_;
    while (capacity < needed) capacity *= 2;
    auto larger = std::make_unique_for_overwrite<std::byte[]>(capacity);
    if (size_ != 0) std::memcpy(larger.get(), bytes_.get(), size_);
    bytes_ = std::move(larger);
    capacity_ = capacity;
  }

  std::unique_ptr<std::byte[]> bytes_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace delayq::journal
