#include "cli/workers.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <ostream>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/child.h"
#include "cli/terminal.h"
#include "core/duration.h"
#include "core/limits.h"
#include "core/moment.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

using Clock = Child::Clock;

/// A worker that waits for a job checks this often whether it must stop.
constexpr Millis kLook{1'000};
constexpr Millis kFirstBackoff{100};
constexpr Millis kLastBackoff{5'000};
constexpr size_t kShownReason = 200;
/// Between SIGTERM and SIGKILL for a command that is to end at once.
constexpr Millis kGrace{1'000};
/// From the second signal until the program ends in any case, in milliseconds.
constexpr int kHurryPatience = 5'000;
/// As of a program that SIGINT has ended.
constexpr int kEndedExit = 130;
/// Of a job that was cancelled while its command ran.
constexpr ErrorCode kCancelled = ErrorCode::kConflict;
/// What printable() makes of it may be a little longer.
constexpr size_t kReasonBytes = Limits::kReasonBytes - 16;

/// What the workers share.
class Shop {
 public:
  Shop(const Session& session, const WorkOrder& order)
      : session_(session),
        order_(order),
        left_(order.count),
        stop_(eventfd(0, EFD_CLOEXEC)),
        hurry_(eventfd(0, EFD_CLOEXEC)) {}
  ~Shop() {
    close(stop_);
    close(hurry_);
  }
  Shop(const Shop&) = delete;
  Shop& operator=(const Shop&) = delete;

  const Session& session() const { return session_; }
  const WorkOrder& order() const { return order_; }

  /// Whether another job may be taken; call put_back() if there was none.
  bool take() {
    const std::lock_guard lock(mutex_);
    if (stopping_) return false;
    if (order_.forever) return true;
    if (left_ == 0) return false;
    --left_;
    return true;
  }
  void put_back() {
    const std::lock_guard lock(mutex_);
    ++left_;
  }

  bool is_stopping() const { return stopping_; }
  /// Becomes readable when no more jobs are to be taken.
  int stop_descriptor() const { return stop_; }
  /// Becomes readable when running commands are to be stopped, too.
  int hurry_descriptor() const { return hurry_; }
  void stop() {
    stopping_ = true;
    eventfd_write(stop_, 1);
  }
  void hurry() { eventfd_write(hurry_, 1); }

  /// Ends everything because of an error that does not go away by waiting.
  void fail(const Error& error) {
    {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = error;
    }
    stop();
  }
  std::optional<Error> error() {
    const std::lock_guard lock(mutex_);
    return error_;
  }

  void warn(const std::string& text) {
    const std::lock_guard lock(mutex_);
    session_.world.err << "delayq: " << text << "\n" << std::flush;
  }
  void pass_on(std::string_view text) {
    const std::lock_guard lock(mutex_);
    session_.world.err << text << std::flush;
  }
  void report(const Popped& job, const Child::End& end, const Status& settled);

  /// A command begins to run, or has ended and its job is settled.
  void begin(const Popped& job) {
    const std::lock_guard lock(mutex_);
    running_.push_back(named(job));
  }
  void end(const Popped& job) {
    const std::lock_guard lock(mutex_);
    running_.erase(std::find(running_.begin(), running_.end(), named(job)));
  }
  /// "2 commands to end (order 7, order 8)"; empty when none runs.
  std::string awaited() {
    constexpr size_t kMostNamed = 5;
    const std::lock_guard lock(mutex_);
    if (running_.empty()) return {};
    const auto shown = running_.begin() + static_cast<ptrdiff_t>(std::min(running_.size(), kMostNamed));
    return fmt::format("{} {} to end ({}{})", running_.size(), running_.size() == 1 ? "command" : "commands",
                       fmt::join(running_.begin(), shown, ", "), shown == running_.end() ? "" : ", ...");
  }

  WorkReport result() {
    const std::lock_guard lock(mutex_);
    return result_;
  }

 private:
  static std::string named(const Popped& job) {
    return printable(job.topic, kShownReason) + " " + printable(job.id, kShownReason);
  }

  const Session& session_;
  const WorkOrder& order_;
  std::mutex mutex_;
  std::vector<std::string> running_;
  uint64_t left_;
  std::atomic<bool> stopping_ = false;
  int stop_;
  int hurry_;
  std::optional<Error> error_;
  WorkReport result_;
};

void Shop::report(const Popped& job, const Child::End& end, const Status& settled) {
  const std::lock_guard lock(mutex_);
  ++(!settled ? result_.lost : end.is_success() ? result_.acked : result_.nacked);
  const std::string_view result = !settled ? "lost" : end.is_success() ? "acked" : "nacked";
  if (session_.json_asked) {
    json::Object object;
    object.text("topic", job.topic).text("id", job.id).number("attempt", job.attempt).text("result", result);
    object.number("exit_code", end.code).number("signal", end.signal);
    if (!settled) {
      object.text("reason", settled.error().detail);
    } else if (!end.is_success()) {
      object.text("reason", end.reason());
    }
    session_.say_json(object.finish());
    session_.world.out << std::flush;
    return;
  }
  if (settled.ok() && end.is_success()) return;
  session_.world.err << fmt::format("delayq: {} {}, attempt {}: {}\n", printable(job.topic, kShownReason),
                                    printable(job.id, kShownReason), job.attempt,
                                    settled.ok() ? "failed: " + printable(end.reason(), kShownReason)
                                                 : "lost: " + settled.error().detail)
                     << std::flush;
}

/// "TRACE_ID" for the header "trace-id". No two headers of a job get the same name.
std::string variable_of(std::string_view header) {
  std::string name(header);
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c == '-' || c == '.') c = '_';
  }
  return name;
}

/// One command at a time.
class Worker {
 public:
  explicit Worker(Shop& shop) : shop_(shop), transport_(shop.session().new_transport()) {}

  void run() {
    while (shop_.take()) {
      const Result<resp::Value> reply = pop();
      if (!reply) {
        shop_.put_back();
        if (!mends(reply.error())) return shop_.fail(reply.error());
        continue;
      }
      backoff_ = kFirstBackoff;
      if (reply->type != resp::Value::Type::kArray) return shop_.fail(unexpected_reply());
      if (reply->items.empty()) {
        shop_.put_back();
        if (!shop_.order().forever && waited_ >= shop_.order().wait) return;
        continue;
      }
      waited_ = {};
      const std::optional<Popped> job = popped_of(reply->items[0]);
      if (!job) return shop_.fail(unexpected_reply());
      shop_.begin(*job);
      work_on(*job);
      shop_.end(*job);
    }
  }

 private:
  Result<resp::Value> pop() {
    const WorkOrder& order = shop_.order();
    const Millis wait = order.forever ? kLook : std::min(kLook, order.wait - waited_);
    waited_ += wait;
    Words command{"POP"};
    command.insert(command.end(), order.topics.begin(), order.topics.end());
    append_option(command, "LEASE", format_duration(order.lease));
    if (wait > Millis::zero()) append_option(command, "WAIT", format_duration(wait));
    command.emplace_back("HEADERS");
    return ask(transport_, command, wait);
  }

  /// Returns whether to try again; if so, waits for a while first.
  bool mends(const Error& error) {
    if (!shop_.order().forever || !traits_of(error.code).retryable) return false;
    shop_.warn(fmt::format("{}; again in {}", error.detail, format_duration(backoff_)));
    pollfd entry{.fd = shop_.stop_descriptor(), .events = POLLIN, .revents = 0};
    poll(&entry, 1, static_cast<int>(backoff_.count()));
    backoff_ = std::min(backoff_ * 2, kLastBackoff);
    return true;
  }

  static std::vector<std::string> environment(const Popped& job) {
    std::vector<std::string> variables{
        "DELAYQ_TOPIC=" + job.topic, "DELAYQ_ID=" + job.id, fmt::format("DELAYQ_ATTEMPT={}", job.attempt),
        "DELAYQ_LEASE=" + job.lease, "DELAYQ_DUE_AT=" + format_moment(from_unix_ms(job.due_ms))};
    for (const auto& [name, value] : job.headers)
      variables.push_back(fmt::format("DELAYQ_HEADER_{}={}", variable_of(name), value));
    return variables;
  }

  void work_on(const Popped& job) {
    Result<Child> child =
        Child::start({.words = shop_.order().words,
                      .environment = environment(job),
                      .input = job.body,
                      .on_error_output = [this](std::string_view text) { shop_.pass_on(text); }});
    if (!child) {
      static_cast<void>(settle({"NACK", job.lease, "REASON", child.error().detail}));
      return shop_.fail(child.error());
    }
    const Status kept = keep_lease(*child, job);
    const Child::End& end = child->end();
    const bool was_cancelled = !kept && kept.error().code == kCancelled;
    // A cancelled job is still ours until it is settled, and then it is gone at once.
    if (was_cancelled && !end.is_success())
      static_cast<void>(settle({"NACK", job.lease, "REASON", "cancelled"}));
    if (!kept && !(was_cancelled && end.is_success())) return shop_.report(job, end, kept);
    const Words verdict = end.is_success()
                              ? Words{"ACK", job.lease}
                              : Words{"NACK", job.lease, "REASON", printable(end.reason(), kReasonBytes)};
    shop_.report(job, end, settle(verdict));
  }

  /// Runs until the command has ended. Fails if the job is not ours any more; then the command was stopped.
  Status keep_lease(Child& child, const Popped& job) {
    const Millis every = shop_.order().lease / 3;
    Clock::time_point next = Clock::now() + every;
    Clock::time_point kill = Clock::time_point::max();
    Status kept;
    for (int wake = shop_.hurry_descriptor(); !child.run_until(std::min(next, kill), wake);) {
      const Clock::time_point now = Clock::now();
      if (now >= kill) {
        child.signal(SIGKILL);
        kill = Clock::time_point::max();
        continue;
      }
      if (now < next) {
        child.signal(SIGTERM);
        kill = now + kGrace;
        wake = -1;  // it stays readable
        continue;
      }
      next = Clock::now() + every;
      if (!kept) {
        child.signal(SIGKILL);
        continue;
      }
      const Result<resp::Value> reply =
          ask(transport_, {"EXTEND", job.lease, format_duration(shop_.order().lease)});
      // An unreachable server may be back before the lease expires.
      if (!reply && traits_of(reply.error().code).retryable) continue;
      if (reply && !is_cancelled(job)) continue;
      kept = reply ? Error{kCancelled, {}, "the job was cancelled, and its command stopped"} : reply.error();
      child.signal(SIGTERM);
    }
    return kept;
  }

  /// Whether the job was cancelled. Its lease stays valid: the command may finish.
  bool is_cancelled(const Popped& job) {
    const Result<resp::Value> found = ask(transport_, {"GET", job.topic, job.id});
    return found && found->find("cancel_requested") != nullptr;
  }

  /// Reports the result, and tries again as long as the lease may last.
  Status settle(const Words& verdict) {
    const Clock::time_point deadline = Clock::now() + shop_.order().lease;
    for (Millis pause = kFirstBackoff;; pause = std::min(pause * 2, kLastBackoff)) {
      const Result<resp::Value> reply = ask(transport_, verdict);
      if (reply && reply->type == resp::Value::Type::kInteger && reply->integer == 0) {
        return Error{ErrorCode::kStaleLease, {}, "the lease has expired, so the job is handed over again"};
      }
      if (reply) return {};
      if (!traits_of(reply.error().code).retryable || Clock::now() + pause > deadline) return reply.error();
      shop_.warn(fmt::format("{}; again in {}", reply.error().detail, format_duration(pause)));
      pollfd entry{.fd = shop_.hurry_descriptor(), .events = POLLIN, .revents = 0};
      if (poll(&entry, 1, static_cast<int>(pause.count())) > 0) return reply.error();
    }
  }

  Shop& shop_;
  Transport transport_;
  Millis waited_{};  ///< since the last job
  Millis backoff_ = kFirstBackoff;
};

/// Passes signals to the shop until there is something to read on `done`. After the second signal the program
/// ends in any case: an answer of the server may not come.
void watch(const SignalReader& signals, int done, Shop& shop) {
  int patience = -1;
  for (;;) {
    std::array<pollfd, 2> entries{{{.fd = signals.descriptor(), .events = POLLIN, .revents = 0},
                                   {.fd = done, .events = POLLIN, .revents = 0}}};
    const int ready = poll(entries.data(), entries.size(), patience);
    if (entries[1].revents != 0) return;
    if (ready == 0) {
      shop.warn("the server does not answer; the jobs are handed over again when their leases expire");
      std::_Exit(kEndedExit);
    }
    signalfd_siginfo info{};
    if (entries[0].revents == 0 || read(signals.descriptor(), &info, sizeof info) != sizeof info) continue;
    const std::string awaited = shop.awaited();
    if (shop.is_stopping()) {
      shop.warn("ending the commands that run; their jobs are tried again");
      shop.hurry();
      patience = kHurryPatience;
    } else if (awaited.empty()) {
      shop.warn("stopping");
      shop.stop();
    } else {
      shop.warn(fmt::format("stopping: waiting for {}; a second Ctrl-C ends them at once", awaited));
      shop.stop();
    }
  }
}

}  // namespace

Result<WorkReport> run_workers(const Session& session, const WorkOrder& order) {
  const SignalReader signals;
  Shop shop(session, order);
  const int done = eventfd(0, EFD_CLOEXEC);
  const uint64_t workers = order.forever ? order.workers : std::min<uint64_t>(order.workers, order.count);
  std::atomic<uint64_t> running = workers;
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < workers; ++i) {
    threads.emplace_back([&shop, &running, done] {
      Worker(shop).run();
      if (--running == 0) eventfd_write(done, 1);
    });
  }
  watch(signals, done, shop);
  for (std::thread& thread : threads) thread.join();
  close(done);
  if (const std::optional<Error> error = shop.error()) return *error;
  return shop.result();
}

}  // namespace delayq::cli
