#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace delayq::net {

/// Memory for answers: those that wait to be read by their clients, and those that requests in progress may
/// still bring, at their largest.
struct AnswerLimits {
  size_t connection = size_t{32} << 20;  ///< of one connection
  size_t all = size_t{512} << 20;        ///< of all connections together
};

/// Counts what the connections of a loop hold. A connection that is at a limit executes no further request
/// until its client has read, so each limit is exceeded by one answer at most.
class AnswerBudget {
 public:
  explicit AnswerBudget(AnswerLimits limits = {}) : limits_(limits) {}

  /// The share of one connection. Its destructor gives it back.
  class [[nodiscard]] Share {
   public:
    explicit Share(AnswerBudget& budget) : budget_(budget) {}
    ~Share() { set(0); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    void set(size_t bytes) {
      budget_.held_ += bytes;
      budget_.held_ -= held_;
      held_ = bytes;
    }
    size_t held() const { return held_; }
    /// Whether a connection that holds `bytes` now may execute another request.
    bool has_room(size_t bytes) const { return bytes < budget_.limits_.connection && !is_crowded_out(bytes); }
    /// Whether it may not because the other connections hold too much.
    bool is_crowded_out(size_t bytes) const { return budget_.held_ - held_ + bytes >= budget_.limits_.all; }

   private:
    AnswerBudget& budget_;
    size_t held_ = 0;
  };

  void set_limits(AnswerLimits limits) { limits_ = limits; }
  size_t held() const { return held_; }
  bool is_full() const { return held_ >= limits_.all; }

 private:
  AnswerLimits limits_;
  size_t held_ = 0;
};

/// What a protocol may ask of its connection. Calls only record the request: the connection acts later in the
/// turn of the loop, never inside the call.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual void on_output() = 0;  ///< the protocol's output() has something to send
  virtual void on_resume() = 0;  ///< it wants input again
  /// The address of the client: "127.0.0.1:40312".
  virtual std::string_view peer() const { return {}; }
  /// Bytes of output that it has taken and not sent yet.
  virtual size_t unsent() const { return 0; }
  /// Whether a protocol that holds this many bytes of answers may execute another request (AnswerBudget).
  virtual bool may_hold(size_t bytes) const { return bytes < AnswerLimits{}.connection; }
};

/// One end of a conversation: bytes in, bytes out, no sockets. Its connection reads, sends, and closes.
class Protocol {
 public:
  virtual ~Protocol() = default;

  /// Consumes complete parts from the front of `input` and returns the number of bytes. The rest is passed
  /// again, followed by more input. `input` is not valid after the call.
  virtual size_t read(std::string_view input) = 0;
  /// How many bytes `input` must have before read() can take anything more. A hint: to grow a buffer once.
  virtual size_t needed() const = 0;
  /// False: it is busy, and read() would consume nothing.
  virtual bool wants_input() const = 0;
  /// Whether it wants input now, or will when its answers are sent. False: it waits for something that may
  /// never happen.
  virtual bool will_want_input() const { return wants_input(); }
  /// The client is authenticated, or need not be: its connection may stay open while it is idle.
  virtual bool is_known() const { return requests() > 0; }
  /// Bytes of answers: those in output(), those that wait for others before them, and those that requests in
  /// progress may bring.
  virtual size_t held() const { return 0; }
  /// Bytes of requests that it keeps until they are whole, or until others have come.
  virtual size_t kept() const { return 0; }
  /// Goes on with answers that it held back because there was no room for more. Called at the end of a turn,
  /// when output was sent. Returns whether there is still no room.
  virtual bool go_on() { return false; }
  /// The memory of its buffers, for tests of the bounds.
  virtual size_t footprint() const { return 0; }
  /// A request has arrived in part. (Input that read() has not consumed is known to the connection itself.)
  virtual bool is_amid_request() const { return false; }
  /// How many requests have arrived completely: distinguishes one slow request from many.
  virtual uint64_t requests() const { return 0; }
  /// The current request takes too long to arrive. May send an error; the connection is then closed.
  virtual void time_out() {}
  /// True: the connection must be closed when the output is sent.
  virtual bool is_over() const = 0;
  /// What is to be sent; the connection takes it away.
  virtual std::string& output() = 0;
  /// The client will send nothing more, but may still read. Returns whether there are replies to come; they
  /// are sent, and then the connection is closed. A waiting request gets none: such a client looks the same
  /// as a dead one.
  virtual bool end_input() = 0;
  /// The connection is closed. The protocol must not call it any more.
  virtual void hang_up() = 0;
};

/// Starts a conversation. The connection outlives the protocol.
using MakeProtocol = std::function<std::shared_ptr<Protocol>(Connection&)>;

}  // namespace delayq::net
