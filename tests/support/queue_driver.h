#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "queue/queue.h"
#include "tests/support/job_spec.h"
#include "tests/support/seen_job.h"

namespace delayq::support {

/// A pop whose reply may come later.
class PendingPop {
 public:
  bool answered() const { return answer_->has_value(); }
  /// The jobs. Throws if there is no reply yet, or an error.
  const std::vector<Taken>& jobs() const;
  const Error& error() const { return answer_->value().error(); }
  WaiterId waiter() const { return waiter_; }

 private:
  friend class QueueDriver;
  std::shared_ptr<std::optional<Result<std::vector<Taken>>>> answer_ =
      std::make_shared<std::optional<Result<std::vector<Taken>>>>();
  WaiterId waiter_ = 0;
};

/// Calls a queue as if it replied at once, so that a test is easy to read: every verb is called with now()
/// and polls until its reply comes. Throws (which fails the test) if the reply is an error, does not come,
/// comes twice, or comes from inside the verb. For replies that may be errors: ask().
class QueueDriver {
 public:
  /// Makes a queue over `engine` and starts it. `pump` runs the background work below the engine and returns
  /// whether there was any.
  explicit QueueDriver(Engine& engine, QueueConfig config = {}, std::function<bool()> pump = {});

  Queue& queue() { return *queue_; }
  /// From now on run() is called before every verb, as a server does that is never busy: for engines that
  /// need it to see what is due.
  void run_before_verbs(bool is_on = true) { runs_first_ = is_on; }

  // ---- the clock
  Moment now() const { return now_; }
  void go_to(Moment moment) { now_ = moment; }
  /// Sets the clock and does everything that is due then. Returns when the queue wants to be called next.
  Moment run_to(Moment moment);
  Moment run() { return run_to(now_); }

  // ---- producers
  Result<PushReceipt> try_push(const PushRequest& request);
  /// Returns the id of the receipt.
  std::string push(const PushRequest& request);
  CancelOutcome cancel(std::string_view topic, std::string_view id);
  GroupCancelAnswer cancel_group(std::string_view group, TopicPatterns topics = kAllTopics);
  RescheduleOutcome reschedule(const RescheduleItem& item);

  // ---- consumers
  std::vector<Taken> pop(std::string_view topic, uint32_t count = 1);
  std::vector<Taken> pop(const PopRequest& request);
  /// Pops the next job. Throws if there is none.
  Taken pop_one(std::string_view topic);
  /// Does not poll for the reply.
  PendingPop begin_pop(const PopRequest& request);
  PendingPop begin_pop(std::string_view topic, Millis wait, uint32_t count = 1);
  Status ack(std::string_view lease);
  Result<NackReceipt> nack(const NackItem& item);
  Result<Moment> extend(const ExtendItem& item);

  // ---- reading
  std::optional<SeenJob> get(std::string_view topic, std::string_view id);
  /// The state of a job that must exist.
  JobState state_of(std::string_view topic, std::string_view id);
  TopicStats stats(std::string_view topic);
  TotalStats totals();
  uint64_t count(std::string_view topic, JobState state) { return stats(topic).counts.of(state); }

  // ---- settings
  void set(std::string_view name, Settings settings);
  void pause(std::string_view topic);
  void resume(std::string_view topic);

  /// Calls `verb` with a Reply, waits for the result and returns it.
  template <class T, class Verb>
  Result<T> ask(std::string_view name, Verb verb) {
    if (runs_first_) run();
    auto waiting = std::make_shared<Waiting<T>>();
    verb(Reply<T>([waiting](Result<T> answer) { waiting->receive(std::move(answer)); }));
    waiting->call_is_over = true;
    wait_for(name, [&] { return waiting->answer.has_value(); });
    return std::move(*waiting->answer);
  }

  template <class T, class Verb>
  T must(std::string_view name, Verb verb) {
    Result<T> answer = ask<T>(name, std::move(verb));
    if (!answer.ok()) throw std::runtime_error(std::string{name} + " answered " + to_string(answer.error()));
    if constexpr (!std::is_void_v<T>) return std::move(*answer);
  }

  /// Polls until `done` returns true. Throws if that never happens.
  void wait_for(std::string_view name, const std::function<bool()>& done);

 private:
  template <class T>
  struct Waiting {
    bool call_is_over = false;
    std::optional<Result<T>> answer;

    void receive(Result<T> result) {
      if (!call_is_over) throw std::logic_error("answered from inside the call that asked");
      if (answer) throw std::logic_error("answered twice");
      answer = std::move(result);
    }
  };

  std::function<bool()> pump_;
  Moment now_ = kStart;
  bool runs_first_ = false;
  std::unique_ptr<Queue> queue_;
};

std::vector<Taken> seen(const PopAnswer& answer);

}  // namespace delayq::support
