#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <absl/container/flat_hash_map.h>

#include "api/access.h"
#include "api/replies.h"
#include "api/traffic.h"
#include "core/served.h"
#include "net/protocol.h"
#include "queue/queue.h"

namespace delayq::api {

/// What the APIs of a server have in common, besides the queue.
struct Front {
  Access access;
  Traffic http;
  Traffic resp;
  /// Told of every request when it is answered; empty: nobody wants to know, and nothing is noted for it.
  std::function<void(const Served&)> served;
  /// Whether that is wanted of RESP commands as well; else nothing is noted for them.
  bool tells_commands = false;
  /// Told of those that were turned away for who asked: no token, one for something else, or too much of one.
  std::function<void(const Served&)> turned_away;
  /// Time that only goes forward, for how long things take.
  std::function<std::chrono::nanoseconds()> stopwatch = [] { return std::chrono::nanoseconds{}; };
};

/// What a conversation is in any protocol: requests that take effect in their order, replies that leave in
/// the same order, and pops that wait. A pop that waits and a verb of several steps (queue/sequence.h) hold
/// up what comes behind them, on their own connection.
class Conversation : public net::Protocol, public std::enable_shared_from_this<Conversation> {
 public:
  ~Conversation() override { sequence_->abandon(); }

  bool wants_input() const override;
  bool is_catching_up() const override;
  bool is_over() const override { return is_over_ && replies_.waiting() == 0; }
  std::string& output() override { return replies_.output(); }
  bool end_input() override;
  void hang_up() override;

 protected:
  using Place = Replies::Place;

  /// Above `most_unanswered` requests, or pops whose answers may be very large, the client is not read until
  /// the queue has answered some.
  Conversation(Queue& queue, const std::function<Moment()>& clock, Front& front, net::Connection& connection,
               size_t most_unanswered);

  /// Asks the queue for jobs, as `place`; `answer` gets what it says. Refused when the caller has too many
  /// waiting.
  Status ask_for_jobs(Moment now, const PopRequest& request, Place place, Reply<PopAnswer> answer);

  /// To be held while requests are read and their verbs are called.
  [[nodiscard]] Queue::InOrder in_order() { return queue_.in_order(sequence_); }

  /// Who asks for `verb`, as logs see it.
  Served about(std::string_view protocol, std::string_view verb) const;
  /// Tells of a refused request, if it was refused for who asked.
  void tell_if_turned_away(Served served, const Error& error) const;

  Queue& queue_;
  const std::function<Moment()>& clock_;
  Front& front_;
  net::Connection* connection_;  ///< null when the client is gone
  Replies replies_;
  Caller caller_;
  bool is_over_ = false;

 private:
  struct Pop {
    WaiterId waiter = 0;
    Access::WaiterPlace place;
    uint64_t most_bytes = 0;
  };
  /// The queue has to answer before more is read.
  bool has_enough_to_do() const;
  void forget_pop(Place place);
  void end_pop(Place place);

  size_t most_unanswered_;
  std::shared_ptr<Sequence> sequence_;
  absl::flat_hash_map<Place, Pop> pops_;  ///< that are not answered yet
  uint64_t most_popped_bytes_ = 0;        ///< that these may bring
  std::optional<Place> holds_up_;         ///< the one among them that waits
};

/// What to say of a reschedule that did not move the job; REQUIRES: it did not.
Error refusal_of(RescheduleOutcome outcome);

}  // namespace delayq::api
