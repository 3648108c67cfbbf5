#include "app/demo.h"

#include <memory>
#include <optional>
#include <ostream>
#include <utility>

#include <fmt/format.h>

#include "core/duration.h"
#include "engine/journal/journal_engine.h"
#include "engine/journal/posix_disk.h"
#include "engine/journal/threaded_io.h"
#include "queue/queue.h"

namespace delayq {

namespace {

using std::chrono::days;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Moment kStart = from_unix_ms(1'735'689'600'000);  // any day will do
constexpr uint64_t kSeed = 1;

/// A queue over a journal, and a clock that stands still until told otherwise.
class Stage {
 public:
  Stage(std::string directory, std::ostream& out) : directory_(std::move(directory)), out_(out) {}

  Status open() {
    Result<std::unique_ptr<journal::PosixDisk>> disk = journal::PosixDisk::open(directory_);
    if (!disk.ok()) return disk.error();
    disk_ = std::move(*disk);
    io_ = std::make_unique<journal::ThreadedIo>();
    journal::JournalOptions options;
    options.segment_bytes = uint64_t{1} << 20;
    options.seed = kSeed;
    auto engine = journal::JournalEngine::open(*disk_, *io_, options, now_);
    if (!engine.ok()) return engine.error();
    engine_ = std::move(*engine);
    queue_ = std::make_unique<Queue>(*engine_, QueueConfig{}, kSeed);
    return ask<void>([&](auto reply) { queue_->start(now_, std::move(reply)); });
  }

  void close() {
    queue_.reset();
    engine_.reset();
    io_.reset();
    disk_.reset();
  }

  /// Calls a verb and waits for its answer: for this program the queue is synchronous.
  template <class T, class Verb>
  Result<T> ask(Verb verb) {
    std::optional<Result<T>> answer;
    verb(Reply<T>([&answer](Result<T> result) { answer.emplace(std::move(result)); }));
    while (!answer) {
      queue_->poll(now_);
      io_->drain();
    }
    return std::move(*answer);
  }

  void go_to(Millis since_start) {
    now_ = kStart + since_start;
    queue_->tick(now_);
    for (bool busy = true; busy; busy = queue_->poll(now_)) io_->drain();
  }

  void say(std::string_view what, std::string_view result) {
    out_ << fmt::format("  {:>10}  {:<46}  {}\n", "+" + format_duration(now_ - kStart), what, result);
  }

  Queue& queue() { return *queue_; }
  Moment now() const { return now_; }

 private:
  std::string directory_;
  std::ostream& out_;
  Moment now_ = kStart;
  std::unique_ptr<journal::PosixDisk> disk_;
  std::unique_ptr<journal::ThreadedIo> io_;
  std::unique_ptr<journal::JournalEngine> engine_;
  std::unique_ptr<Queue> queue_;
};

std::string since_start(Moment moment) { return "+" + format_duration(moment - kStart); }

std::string name_of_error(const Error& error) {
  return fmt::format("{}: {}", traits_of(error.code).name, error.detail);
}

/// The verbs, as a person would say them.
class Actor {
 public:
  explicit Actor(Stage& stage) : stage_(stage), queue_(&stage.queue()) {}

  void push(const PushRequest& job, std::string_view what) {
    const auto report = stage_.ask<PushReport>([&](auto reply) {
      queue_->push(stage_.now(), {&job, 1}, std::move(reply));
    });
    const Result<PushReceipt>& receipt = report->jobs.front();
    stage_.say(what, receipt.ok()
                         ? fmt::format("{} until {}", name_of(receipt->state), since_start(receipt->due))
                         : name_of_error(receipt.error()));
  }

  void cancel(const JobRef& job, std::string_view what) {
    const auto results = stage_.ask<std::vector<Result<CancelOutcome>>>([&](auto reply) {
      queue_->cancel(stage_.now(), {&job, 1}, std::move(reply));
    });
    stage_.say(what, name_of(results->front().value()));
  }

  void reschedule(const RescheduleItem& item, std::string_view what) {
    const auto results = stage_.ask<std::vector<Result<RescheduleOutcome>>>([&](auto reply) {
      queue_->reschedule(stage_.now(), {&item, 1}, std::move(reply));
    });
    stage_.say(what, *results->front() == RescheduleOutcome::kMoved ? "moved, same id" : "not moved");
  }

  /// Answers the lease, or nothing when there was no job.
  std::string pop(std::string_view topic, std::string_view what) {
    const auto popped = stage_.ask<PopAnswer>([&](auto reply) {
      queue_->pop(stage_.now(), {.topics = {&topic, 1}}, std::move(reply));
    });
    if (popped->jobs.empty()) {
      stage_.say(what, "nothing: never early");
      return {};
    }
    const TakenJob& taken = popped->jobs.front();
    stage_.say(what, fmt::format("{} {}, attempt {}, leased until {}", taken.job.id, taken.job.body,
                                 taken.job.attempts, since_start(taken.job.until)));
    return std::string{taken.lease};
  }

  void ack(std::string_view lease, std::string_view what) {
    const AckItem item{.lease = lease};
    const auto results = stage_.ask<std::vector<Status>>([&](auto reply) {
      queue_->ack(stage_.now(), {&item, 1}, std::move(reply));
    });
    const Status& acked = results->front();
    stage_.say(what, acked.ok() ? "done" : name_of_error(acked.error()));
  }

  void nack(std::string_view lease, std::string_view reason, std::string_view what) {
    const NackItem item{.lease = lease, .reason = reason};
    const auto results = stage_.ask<std::vector<Result<NackReceipt>>>([&](auto reply) {
      queue_->nack(stage_.now(), {&item, 1}, std::move(reply));
    });
    const NackReceipt& receipt = results->front().value();
    stage_.say(what, receipt.retry_at ? "will be tried again at " + since_start(*receipt.retry_at)
                                      : "attempts used up: dead");
  }

  void look(const JobRef& job, std::string_view what) {
    const auto found = stage_.ask<std::optional<FoundJob>>(
        [&](auto reply) { queue_->get(stage_.now(), job, std::move(reply)); });
    const Job& seen = (*found)->job;
    stage_.say(what, fmt::format("{}, \"{}\"", name_of(seen.state), seen.outcome));
  }

  void redrive(std::string_view topic, std::string_view what) {
    const auto count =
        stage_.ask<uint64_t>([&](auto reply) { queue_->redrive_all(stage_.now(), topic, std::move(reply)); });
    stage_.say(what, fmt::format("{} ready again", *count));
  }

  void cancel_group(std::string_view group, std::string_view what) {
    const auto answer = stage_.ask<GroupCancelAnswer>(
        [&](auto reply) { queue_->cancel_group(stage_.now(), group, std::move(reply)); });
    stage_.say(what, fmt::format("{} cancelled", answer->cancelled));
  }

  void settings(std::string_view topic, Settings settings, std::string_view what) {
    const Status set = stage_.ask<void>([&](auto reply) {
      queue_->set_settings(stage_.now(), topic, std::move(settings), std::move(reply));
    });
    stage_.say(what, set.ok() ? "kept" : name_of_error(set.error()));
  }

  void stop(std::string_view what) {
    const auto stopped =
        stage_.ask<StopReport>([&](auto reply) { queue_->stop(stage_.now(), seconds{5}, std::move(reply)); });
    stage_.say(what, fmt::format("flushed; {} leases were still out", stopped->leases_left));
  }

 private:
  Stage& stage_;
  Queue* queue_;
};

void first_act(Stage& stage) {
  Actor user{stage};
  user.settings("order", {.attempts = 3, .backoff = StepBackoff{{seconds{10}, minutes{1}}}},
                "topic order: 3 attempts, backoff 10s, 1m");
  const PushRequest order{.topic = "order", .id = "1001", .body = "{\"pay\":1}", .delay = minutes{30}};
  user.push(order, "push order 1001, delay 30m");
  user.push(order, "push order 1001 once more");
  user.push({.topic = "order", .id = "1002", .delay = minutes{30}}, "push order 1002, delay 30m");
  user.cancel({"order", "1002"}, "cancel order 1002");
  user.reschedule({.job = {"order", "1001"}, .delay = minutes{10}}, "reschedule order 1001 to 10m");
  stage.go_to(minutes{10} - Millis{1});
  user.pop("order", "pop order, one millisecond before its time");
  stage.go_to(minutes{10});
  user.nack(user.pop("order", "pop order"), "bank is closed", "nack: bank is closed");
  stage.go_to(minutes{10} + seconds{10});
  const std::string late = user.pop("order", "pop order");
  stage.go_to(minutes{11} + seconds{10});
  user.look({"order", "1001"}, "the consumer died; look at order 1001");
  user.ack(late, "the consumer comes back and acks");
  stage.go_to(minutes{12} + seconds{10});
  user.nack(user.pop("order", "pop order"), "bank is still closed", "nack: bank is still closed");
}

void second_act(Stage& stage) {
  Actor user{stage};
  user.look({"order", "1001"}, "restart; look at order 1001");
  user.redrive("order", "redrive the dead of order");
  user.ack(user.pop("order", "pop order"), "ack");
  for (const int day : {23, 28, 29, 30}) {
    const PushRequest job{.topic = day == 30 ? "delete" : "remind", .group = "account:7", .delay = days{day}};
    user.push(job, fmt::format("push {} of group account:7, delay {}d", job.topic, day));
  }
  user.cancel_group("account:7", "the user came back: cancel group account:7");
  user.stop("stop, with a grace period of 5s");
}

}  // namespace

Status run_demo(const std::string& directory, std::ostream& out) {
  out << "A job's life, over the journal engine, on a virtual clock:\n";
  Stage stage{directory, out};
  if (Status opened = stage.open(); !opened) return opened;
  first_act(stage);
  stage.close();
  if (Status opened = stage.open(); !opened) return opened;
  second_act(stage);
  stage.close();
  return {};
}

}  // namespace delayq
