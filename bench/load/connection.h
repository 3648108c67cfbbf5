#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "bench/load/descriptor.h"
#include "core/result.h"

namespace delayq::bench {

/// A non-blocking connection: what is still to be sent, and what has come and is not used yet.
class Connection {
 public:
  /// The socket must not block.
  explicit Connection(Descriptor socket) : socket_(std::move(socket)) {}

  int number() const { return socket_.get(); }

  /// Requests are appended here, any number of them before one send().
  std::string& out() { return out_; }
  bool is_sending() const { return sent_ < out_.size(); }
  /// Sends what the socket takes now.
  Status send();

  /// Reads what is there; an error when the other side has closed.
  Status receive();
  std::string_view input() const { return {in_.get() + begin_, end_ - begin_}; }
  void consume(size_t bytes) { begin_ += bytes; }

  /// The socket becomes readable only with this many bytes. Some servers write each answer by itself: waking
  /// once for many of them leaves the processor to the server. A wait for more than will come must be
  /// bounded.
  void wake_at(size_t bytes);
  bool waits_for_many() const { return wake_at_ > 1; }

 private:
  void make_room();

  Descriptor socket_;
  std::string out_;
  size_t sent_ = 0;
  std::unique_ptr<char[]> in_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t capacity_ = 0;
  size_t wake_at_ = 1;
};

}  // namespace delayq::bench
