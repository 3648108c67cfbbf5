#pragma once

#include <charconv>
#include <concepts>
#include <span>
#include <string_view>
#include <vector>

#include "core/arena.h"
#include "engine/redis/record.h"

namespace delayq::redis {

/// The ARGV of one call.
class Arguments {
 public:
  /// A copy.
  Arguments& text(std::string_view word) { return view(storage_.copy(word)); }
  /// A text that lives as long as this, or is in its storage.
  Arguments& view(std::string_view word) {
    words_.push_back(word);
    bytes_ += word.size();
    return *this;
  }
  Arguments& number(std::integral auto value) {
    char digits[24];
    const char* const end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
    return text({digits, static_cast<size_t>(end - digits)});
  }
  Arguments& moment(Moment moment) { return number(to_stored(moment)); }

  /// Takes out `count` of them, from that place on.
  void remove(size_t place, size_t count) {
    const auto first = words_.begin() + static_cast<ptrdiff_t>(place);
    for (size_t i = 0; i < count; ++i) bytes_ -= words_[place + i].size();
    words_.erase(first, first + static_cast<ptrdiff_t>(count));
  }

  /// Room for texts that live as long as this.
  Arena& storage() { return storage_; }
  std::span<const std::string_view> words() const { return words_; }
  size_t bytes() const { return bytes_; }

 private:
  std::vector<std::string_view> words_;
  size_t bytes_ = 0;
  Arena storage_;
};

}  // namespace delayq::redis
