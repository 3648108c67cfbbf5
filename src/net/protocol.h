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

  /// What one connection holds. Gives it back when it goes.
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
    /// Whether the others hold so much that it may not.
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

/// What a protocol may ask of the connection it is spoken over. All calls only take note: the connection acts
/// when the loop comes round to it, never inside the call.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual void on_output() = 0;  ///< the protocol's output() has something to send
  virtual void on_resume() = 0;  ///< it wants input again
  /// Who is at the other end: "127.0.0.1:40312".
  virtual std::string_view peer() const { return {}; }
  /// Bytes of output that it has taken and not sent yet.
  virtual size_t unsent() const { return 0; }
  /// Whether a protocol that holds so many bytes of answers may execute another request (AnswerBudget).
  virtual bool may_hold(size_t bytes) const { return bytes < AnswerLimits{}.connection; }
};

/// One end of a conversation: bytes in, bytes out, no sockets. Its connection reads, sends, and closes.
class Protocol {
 public:
  virtual ~Protocol() = default;

  /// Takes what it understands off the front of `input` and answers how many bytes that was; the rest will
  /// come again, with more behind it. The bytes are gone when it returns.
  virtual size_t read(std::string_view input) = 0;
  /// How many bytes `input` must have before read() can take anything more. A hint: to grow a buffer once.
  virtual size_t needed() const = 0;
  /// False: it has enough to do, and read() would take nothing.
  virtual bool wants_input() const = 0;
  /// It may want none now, and will when answers have come and were sent. False: it waits for something that
  /// need not happen.
  virtual bool will_want_input() const { return wants_input(); }
  /// The client has said who it is, or need not: its connection may stay open when it is quiet.
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
  /// A request has begun to come, and is not whole. (Of what was left in the connection's hands it knows
  /// itself.)
  virtual bool is_amid_request() const { return false; }
  /// How many requests have come whole: tells one that takes long from many.
  virtual uint64_t requests() const { return 0; }
  /// The request that has begun takes too long to come. May say so; it is over.
  virtual void time_out() {}
  /// True: to be closed when the output is sent.
  virtual bool is_over() const = 0;
  /// What is to be sent; the connection takes it away.
  virtual std::string& output() = 0;
  /// The other side has said all it will say, and may still listen. Answers whether it has replies to come;
  /// they are sent, and then it is over. Not for one that waits: there is no telling such a client from a
  /// dead one.
  virtual bool end_input() = 0;
  /// The other side is gone. Never calls its connection again.
  virtual void hang_up() = 0;
};

/// Starts a conversation. The connection outlives its protocol's last call of it.
using MakeProtocol = std::function<std::shared_ptr<Protocol>(Connection&)>;

}  // namespace delayq::net
