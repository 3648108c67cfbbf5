#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include <absl/container/flat_hash_set.h>

#include "net/protocol.h"
#include "net/stream.h"

namespace delayq::net {

class Session;

/// The monotonic clock, to measure durations.
using Steady = std::chrono::steady_clock::time_point;

/// What a session needs of its socket besides the bytes, which its Stream carries: to be called when it can
/// read or write. No method calls the session from within. After close() the session is not called any more.
class Socket {
 public:
  virtual ~Socket() = default;

  /// Calls Session::on_input() once: bytes, their end, or an error can be received.
  virtual void wait_for_input() = 0;
  /// Calls Session::on_room() once: something can be sent.
  virtual void wait_for_room() = 0;
  /// Calls Session::on_alarm() at `at`. There is one alarm: it replaces the one before.
  virtual void set_alarm(Steady at) = 0;
  /// Tells the other side that nothing more will be sent.
  virtual void end_output() = 0;
  virtual void close() = 0;
  /// The address of the other end: "127.0.0.1:40312". Empty if it is not known.
  virtual std::string peer() const = 0;
  virtual Steady now() const = 0;
};

/// An object with something to send at the end of a turn.
class AtTurnEnd {
 public:
  virtual ~AtTurnEnd() = default;
  /// Returns whether it read something meanwhile: then there is new work.
  virtual bool finish_turn() = 0;
};

/// The open sessions of one loop, and what they share. Knows no sockets and no clock.
class SessionSet {
 public:
  SessionSet();
  ~SessionSet();
  SessionSet(const SessionSet&) = delete;
  SessionSet& operator=(const SessionSet&) = delete;

  /// Calls `object` at the end of this turn. Call it at most once per turn: duplicates are not detected.
  void touch(std::shared_ptr<AtTurnEnd> object) { touched_.push_back(std::move(object)); }
  /// Sends what is to be sent. Returns whether a connection read something meanwhile: then there is new work.
  bool finish_turn();

  /// Drops all sessions at once.
  void clear();
  size_t size() const { return open_.size(); }
  const absl::flat_hash_set<std::shared_ptr<Session>>& open() const { return open_; }
  /// The limits of answers; the same limits apply to requests that have not arrived completely.
  void set_limits(AnswerLimits limits) {
    budget_.set_limits(limits);
    requests_.set_limits(limits);
  }
  AnswerBudget& budget() { return budget_; }
  const AnswerBudget& budget() const { return budget_; }

  /// Closes the session that has been idle longest among those that sent no request or did not authenticate.
  /// Returns false if there is none.
  bool drop_stranger();

 private:
  friend class Session;

  /// A session waits for others to release their share of the budget.
  void hold_back(std::shared_ptr<Session> session) { held_back_.push_back(std::move(session)); }
  /// While the budget is full: closes the session with the most unsent bytes among those whose clients read
  /// slowly.
  void drop_slow_reader(Steady now);
  /// Closes sessions, the one with the most bytes of a request first, until all have no more than the limit.
  /// Nothing of such a request has been executed.
  void drop_largest_requests();

  AnswerBudget budget_;
  AnswerBudget requests_;                            ///< requests that have arrived in part
  std::vector<std::shared_ptr<AtTurnEnd>> touched_;  ///< those with something to do at the end of this turn
  std::vector<std::shared_ptr<AtTurnEnd>> spare_;    ///< empty: the memory of the next touched_
  std::string scratch_;            ///< every read goes here first: idle sessions own no buffer
  std::list<Session*> strangers_;  ///< those that were idle longest come first
  std::vector<std::shared_ptr<Session>> held_back_;
  Steady last_drop_{};
  /// This set owns them.
  absl::flat_hash_set<std::shared_ptr<Session>> open_;
};

struct SessionLimits {
  /// No further requests are read from a client with more unread bytes of replies than this,
  size_t output_bytes = 1 << 20;
  /// and it is closed if it reads nothing for this long, or less than `least_taken` bytes per second.
  std::chrono::milliseconds stall = std::chrono::seconds{30};
  size_t least_taken = 1024;
  /// A request must arrive completely within this time, plus one second per `bytes_per_second` bytes.
  std::chrono::milliseconds request = std::chrono::seconds{20};
  size_t bytes_per_second = 16 * 1024;
  /// A client that has sent no request, or has not authenticated where tokens are configured, may be idle for
  /// this long.
  std::chrono::milliseconds stranger = std::chrono::minutes{5};
  /// Input that is kept while the protocol wants none.
  size_t waiting_input_bytes = 64 * 1024;
};

/// One accepted connection and the protocol spoken over it. Bytes come and go by its Stream, and its Socket
/// calls it when there is something to do; so it runs over anything that has these two.
///
/// Each call from the socket moves bytes, waits for the socket, or closes: no state makes the loop spin.
class Session : public Connection, public AtTurnEnd, public std::enable_shared_from_this<Session> {
 public:
  Session(SessionSet& set, std::unique_ptr<Socket> socket, std::unique_ptr<Stream> stream,
          SessionLimits limits);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start(const MakeProtocol& make);

  // ---- from the socket
  void on_input();
  void on_room();
  void on_alarm();
  void close();
  bool is_closed() const { return is_closed_; }

  // ---- from the set
  /// Sends and reads what was held up in this turn. Returns whether it read something.
  bool finish_turn() override;
  /// Other sessions have released their share of the budget.
  void on_budget();
  /// Whether the client has been watched for a while, and reads so slowly that its output would stay here for
  /// long.
  bool is_read_slowly(Steady now) const;

  // ---- from the protocol
  void on_output() override { touch(); }
  void on_resume() override { touch(); }
  std::string_view peer() const override;
  size_t unsent() const override { return output_.size() - sent_; }
  bool may_hold(size_t bytes) const override { return share_.has_room(bytes + unsent()); }

  /// The memory of its buffers and of its protocol's, for tests of the bounds.
  size_t footprint() const;
  /// The bytes of requests that have not arrived completely.
  size_t request_bytes() const { return request_share_.held(); }

 protected:
  /// How much may still be received while the protocol wants nothing. A seam for the simulator, which plants
  /// a bug here.
  virtual size_t room_for_waiting_input() const;
  const SessionLimits& limits() const { return limits_; }
  size_t waiting_input() const { return input_.size(); }

 private:
  void touch();
  void wait_for_input();
  void wait_for_room();
  void receive();
  /// Further input is ignored.
  void receive_and_drop();
  /// Reads and appends to the input. Returns what recv() returns.
  ssize_t receive_behind(std::string_view& came);
  /// Tells the protocol that the client will send nothing more.
  void tell_end();
  /// Keeps the rest of the input, which may be the end of input_ itself.
  void keep(std::string_view rest);
  /// Passes the input to the protocol. Returns whether it consumed any of it.
  bool pass_on();
  bool may_pass_on() const;
  bool may_receive() const { return !input_ended_ && may_pass_on(); }
  void send();
  /// Nothing can be sent before more input arrives.
  void wait_for_reply();
  /// Brings the share of the budget up to date.
  void account() {
    share_.set(protocol_->held() + unsent());
    request_share_.set(input_.size() + protocol_->kept());
  }
  /// Waits while other sessions hold all of the budget. REQUIRES: there is something to do.
  void wait_for_budget();

  // ---- deadlines
  void watch_request();
  void watch_stall();
  void watch_stranger();
  Steady request_deadline() const;
  /// Sets the alarm to `deadline`, unless it is earlier.
  void ring_by(Steady deadline);
  void check_stall(Steady now);
  void check_request(Steady now);

  /// Lets the other side read the reason if it is still sending: when a socket is closed with unread input,
  /// the bytes sent last are lost.
  void close_gently();
  void forget_stranger();

  SessionSet& set_;
  std::unique_ptr<Socket> socket_;
  SessionLimits limits_;
  std::unique_ptr<Stream> stream_;
  std::shared_ptr<Protocol> protocol_;
  AnswerBudget::Share share_;
  AnswerBudget::Share request_share_;
  std::string input_;  ///< received, and not consumed yet
  std::string output_;
  size_t sent_ = 0;  ///< of output_
  uint64_t total_sent_ = 0;
  uint64_t total_received_ = 0;
  mutable std::string peer_;  ///< set by the first call of peer()

  /// A request that has arrived in part.
  struct Begun {
    Steady at;
    uint64_t number = 0;           ///< of requests before it
    uint64_t received_before = 0;  ///< bytes
  };
  std::optional<Begun> begun_;
  /// Output that the client does not read.
  struct Stall {
    Steady deadline;
    uint64_t sent_before = 0;
    uint64_t least = 0;  ///< that it must have taken by then
  };
  std::optional<Stall> stall_;
  std::optional<Steady> goodbye_;         ///< when it is closed at the latest
  std::optional<Steady> stranger_until_;  ///< the client is idle, and sent no request or did not authenticate
  std::list<Session*>::iterator stranger_;
  uint64_t stranger_requests_ = 0;  ///< when it was put there
  Steady alarm_ = Steady::max();    ///< rings then

  bool is_touched_ = false;
  bool waits_for_input_ = false;
  bool waits_for_room_ = false;
  bool is_held_back_ = false;
  bool input_ended_ = false;
  bool told_end_ = false;  ///< of the input, to the protocol
  bool is_closing_ = false;
  bool is_closed_ = false;
};

}  // namespace delayq::net
