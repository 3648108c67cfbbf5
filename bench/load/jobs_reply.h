#pragma once

#include <cstdint>
#include <string_view>

#include "core/result.h"

namespace delayq::bench {

/// A job in the reply to POP, as views into that reply.
struct PoppedJob {
  std::string_view lease;
  std::string_view topic;
  std::string_view id;
  std::string_view body;
  int64_t attempt = 0;
  int64_t due_ms = 0;
};

/// Walks through a whole reply to POP without building anything, for a reader that shares its processor with
/// the server.
class JobsReply {
 public:
  /// `reply` is whole, see resp::reply_size(). A reply that is no array has no jobs and is broken().
  explicit JobsReply(std::string_view reply);

  /// How many the reply says it has.
  size_t size() const { return size_; }
  /// The next job; false when there is none left, or what is there is none.
  bool next(PoppedJob& job);
  bool broken() const { return broken_; }

 private:
  bool number_after(char sign, int64_t& value);
  bool bulk(std::string_view& text);

  std::string_view rest_;
  size_t size_ = 0;
  size_t taken_ = 0;
  bool broken_ = false;
};

}  // namespace delayq::bench
