#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

namespace delayq::api {

/// The position of a reply in the order of its connection.
using ReplyPlace = uint64_t;

/// Sends replies in the order of their commands, whatever the order in which they are known. A place is
/// reserved when a command is accepted. The reply for the first place is written to the output; the others
/// wait for those before them.
class Replies {
 public:
  /// `most_bytes`: how large the reply may become; counted in bytes() until the reply is known.
  ReplyPlace reserve(size_t most_bytes = 0) {
    waiting_.emplace_back().promised = most_bytes;
    promised_ += most_bytes;
    return first_ + waiting_.size() - 1;
  }
  /// The reply at `place` may become this large. REQUIRES: the place is reserved and not yet filled.
  void promise(ReplyPlace place, size_t most_bytes) {
    size_t& promised = waiting_[place - first_].promised;
    promised_ += most_bytes;
    promised_ -= std::exchange(promised, most_bytes);
  }

  /// `fill(std::string&)` appends the reply's bytes. REQUIRES: the place is reserved and not yet filled.
  template <class Fill>
  void fill(ReplyPlace place, Fill&& fill) {
    extend(place, std::forward<Fill>(fill));
    promise(place, 0);
    waiting_[place - first_].is_filled = true;
    while (!waiting_.empty() && waiting_.front().is_filled) {
      waiting_.pop_front();
      ++first_;
      if (!waiting_.empty()) release_first();
    }
  }
  /// The same with the first part of a reply: more of it follows.
  template <class Fill>
  void extend(ReplyPlace place, Fill&& fill) {
    if (place == first_) return fill(output_);
    std::string& later = waiting_[place - first_].reply;
    const size_t before = later.size();
    fill(later);
    waiting_bytes_ += later.size() - before;
  }

  /// The place that reserve() returns next.
  ReplyPlace next_place() const { return first_ + waiting_.size(); }
  /// Places that are not filled yet, or wait for one before them.
  size_t waiting() const { return waiting_.size(); }
  /// Bytes of replies: in the output, waiting for others, and reserved.
  size_t bytes() const { return output_.size() + waiting_bytes_ + promised_; }
  /// The memory of all replies, counted one by one.
  size_t footprint() const {
    size_t bytes = output_.capacity() + waiting_.size() * sizeof(Waiting);
    for (const Waiting& each : waiting_) bytes += each.reply.capacity();
    return bytes;
  }
  std::string& output() { return output_; }
  const std::string& output() const { return output_; }

 private:
  struct Waiting {
    std::string reply;  ///< as far as it is known; of the first one, in the output already
    size_t promised = 0;
    bool is_filled = false;
  };

  /// Moves what is known of the first reply to the output.
  void release_first() {
    std::string& reply = waiting_.front().reply;
    waiting_bytes_ -= reply.size();
    output_ += reply;
    std::string().swap(reply);
  }

  std::deque<Waiting> waiting_;
  ReplyPlace first_ = 0;
  std::string output_;
  size_t waiting_bytes_ = 0;
  size_t promised_ = 0;
};

}  // namespace delayq::api
