#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace delayq {

/// Memory for the strings of one answer: many small copies, few allocations, all freed together.
/// Views into it stay valid when the arena is moved. Not thread-safe.
class Arena {
 public:
  std::string_view copy(std::string_view text) {
    if (text.empty()) return {};
    std::span<char> room = allocate(text.size());
    std::memcpy(room.data(), text.data(), text.size());
    return {room.data(), room.size()};
  }

  /// Uninitialised room for `size` bytes, without alignment.
  std::span<char> allocate(size_t size) {
    if (size > left_) grow(size);
    std::span<char> room{next_, size};
    next_ += size;
    left_ -= size;
    return room;
  }

 private:
  void grow(size_t size) {
    const size_t block = size > kBlock / 4 ? size : kBlock;
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(block));
    next_ = blocks_.back().get();
    left_ = block;
  }

  static constexpr size_t kBlock = 16 * 1024;

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* next_ = nullptr;
  size_t left_ = 0;
};

}  // namespace delayq
