#include "sdk/cpp/src/embedded.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <list>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/resp/conversation.h"
#include "core/duration.h"
#include "core/retry_policy.h"
#include "engine/journal/journal_engine.h"
#include "engine/journal/posix_disk.h"
#include "net/protocol.h"
#include "queue/queue.h"

namespace delayq::embedded {

namespace {

constexpr std::string_view kVersion = "embedded";
/// A bound on the rounds of one turn, so that replies leave while there is always more to do.
constexpr int kMostRounds = 64;
/// The clock is read at least this often: it may have been set.
constexpr std::chrono::milliseconds kLongestWait{1000};
constexpr std::chrono::seconds kLongestFlush{30};
constexpr Millis kSyncInterval{50};

Moment wall_now() { return std::chrono::floor<Millis>(std::chrono::system_clock::now()); }

uint64_t random_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32) ^ device();
}

/// As a server writes it.
std::string line_of(const Error& error) {
  const std::string_view prefix = traits_of(error.code).resp_prefix;
  if (error.retry_after <= Millis::zero()) return fmt::format("{} {}", prefix, error.detail);
  return fmt::format("{} {} (try again in {})", prefix, error.detail, format_duration(error.retry_after));
}

/// Fills a new request where it is: it is large.
void fill(PushRequest& request, std::string_view texts, const PushJob& job) {
  texts.remove_prefix(job.begin);
  const auto take = [&texts](size_t size) {
    const std::string_view text = texts.substr(0, size);
    texts.remove_prefix(size);
    return text;
  };
  request.topic = take(job.topic);
  request.id = take(job.id);
  request.body = take(job.body);
  if (job.group > 0) request.group = take(job.group);
  request.delay = job.delay;
  if (job.at_ms) request.at = from_unix_ms(*job.at_ms);
  request.priority = job.priority;
  request.options.attempts = job.attempts;
  request.options.lease = job.lease;
  request.on_conflict = job.on_conflict == Conflict::kReplace ? OnConflict::kReplace
                        : job.on_conflict == Conflict::kKeep  ? OnConflict::kKeep
                                                              : OnConflict::kReject;
}

/// A conversation of the server without its socket.
class LocalSession final : public Session, private net::Connection {
 public:
  LocalSession(resp::Endpoint& host, const resp::CommandLimits& limits)
      : queue_(host.queue),
        conversation_(
            std::make_shared<resp::Conversation>(host, static_cast<net::Connection&>(*this), limits)) {}
  ~LocalSession() override { conversation_->hang_up(); }
  LocalSession(const LocalSession&) = delete;
  LocalSession& operator=(const LocalSession&) = delete;

  size_t read(std::string_view commands) override {
    size_t taken = 0;
    while (taken < commands.size() && !ended_ && !conversation_->is_over() && conversation_->wants_input()) {
      const size_t once = conversation_->read(commands.substr(taken));
      if (once == 0) break;
      taken += once;
    }
    conversation_->go_on();
    return taken;
  }
  void push(std::string_view texts, std::span<const PushJob> jobs, uint64_t ticket) override {
    requests_.clear();
    for (const PushJob& job : jobs) fill(requests_.emplace_back(), texts, job);
    queue_.push(
        wall_now(), requests_,
        [pushed = std::weak_ptr(pushed_), ticket, count = jobs.size()](const Result<PushReport>& report) {
          if (const auto there = pushed.lock()) there->push_back(result_of(report, ticket, count));
        });
  }
  std::vector<Pushed> take_pushed() override { return std::exchange(*pushed_, {}); }
  std::string& output() override { return conversation_->output(); }
  void end_input() override {
    if (std::exchange(ended_, true)) return;
    if (conversation_->end_input()) return;
    conversation_->hang_up();
    is_gone_ = true;
  }
  bool is_over() const override { return is_gone_ || conversation_->is_over(); }

 private:
  void on_output() override {}
  void on_resume() override {}
  static Pushed result_of(const Result<PushReport>& report, uint64_t ticket, size_t count) {
    Pushed result{ticket};
    for (uint32_t i = 0; i < count; ++i) {
      const Error* error = report.ok() ? nullptr : &report.error();
      if (error == nullptr && !report->jobs[i].ok()) error = &report->jobs[i].error();
      if (error != nullptr) result.refused.push_back({i, line_of(*error)});
    }
    return result;
  }

  Queue& queue_;
  std::shared_ptr<resp::Conversation> conversation_;
  std::vector<PushRequest> requests_;  ///< of the push that is made
  /// Shared, because the queue may answer when the session is gone.
  std::shared_ptr<std::vector<Pushed>> pushed_ = std::make_shared<std::vector<Pushed>>();
  bool ended_ = false;
  bool is_gone_ = false;
};

class JournalInProcess final : public Engine {
 public:
  ~JournalInProcess() override {
    stops_ = true;
    wake();
    if (thread_.joinable()) thread_.join();
  }

  /// Opens everything, on the caller's thread; the engine's thread takes over from there.
  Status open(const Options& options);

  void add(Peer& peer) override {
    {
      const std::lock_guard lock(peers_mutex_);
      new_peers_.push_back(&peer);
    }
    wake();
  }

  void remove(Peer& peer) override {
    std::promise<void> removed;
    std::future<void> is_removed = removed.get_future();
    {
      const std::lock_guard lock(peers_mutex_);
      removals_.push_back({&peer, std::move(removed)});
    }
    wake();
    is_removed.wait();
  }

  void wake() override {
    if (is_awake_.exchange(true)) return;
    // The thread may be between its look at the flag and its sleep: the lock waits for that.
    { const std::lock_guard lock(mutex_); }
    awake_.notify_one();
  }

  void start() {
    thread_ = std::thread([this] { run(); });
  }

 private:
  struct Removal {
    Peer* peer;
    std::promise<void> removed;
  };

  Status set_topic(const std::string& name, const TopicSettings& said);
  /// Runs the queue until `reply` was called.
  template <class Ask>
  Status wait_for(Ask ask);
  void run();
  void serve_peers_that_come_and_go();
  /// Runs the queue; returns when it wants to be called again.
  Moment work();
  void sleep_until(Moment next);
  /// Stops the queue and waits until everything is on disk.
  void flush();
  std::unique_ptr<Session> make_session() { return std::make_unique<LocalSession>(*host_, command_limits_); }

  std::unique_ptr<journal::PosixDisk> disk_;
  std::unique_ptr<journal::ThreadedIo> io_;
  std::unique_ptr<journal::JournalEngine> engine_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<resp::Endpoint> host_;
  resp::CommandLimits command_limits_;

  std::mutex mutex_;  ///< of the sleep
  std::condition_variable awake_;
  std::atomic<bool> is_awake_ = false;
  std::atomic<bool> stops_ = false;

  std::mutex peers_mutex_;
  std::vector<Peer*> new_peers_;
  std::list<Removal> removals_;
  std::vector<Peer*> peers_;  ///< of the thread
  void (*begin_thread_)(const char*) = nullptr;
  std::thread thread_;
};

Status JournalInProcess::open(const Options& options) {
  auto disk = journal::PosixDisk::open(options.directory);
  if (!disk.ok()) return disk.error();
  disk_ = *std::move(disk);
  begin_thread_ = options.begin_thread;
  io_ = std::make_unique<journal::ThreadedIo>();
  journal::JournalOptions journal;
  journal.seed = random_seed();
  journal.durability = options.syncs ? journal::Durability::kCommit : journal::Durability::kInterval;
  journal.sync_interval = kSyncInterval;
  journal.disk_reserve = std::min(journal.disk_reserve, options.min_free_disk);
  auto engine = journal::JournalEngine::open(*disk_, *io_, journal, wall_now());
  if (!engine.ok()) return engine.error();
  engine_ = *std::move(engine);
  engine_->set_wakeup([this] { wake(); });

  QueueConfig config;
  config.limits.body_bytes = std::min(options.max_payload, Limits::kMaxBodyBytes);
  config.disk_free_bytes = options.min_free_disk;
  if (options.max_jobs) config.jobs = *options.max_jobs;
  // A server may have used this directory, and may use it again: its settings stay as they are.
  config.redis.is_there = true;
  config.has_kafka = true;
  queue_ = std::make_unique<Queue>(*engine_, config, random_seed());
  Status status = wait_for([this](Reply<void> reply) { queue_->start(wall_now(), std::move(reply)); });
  for (const auto& [name, said] : options.topics) {
    if (!status.ok()) return status;
    status = set_topic(name, said);
  }
  host_ = std::make_unique<resp::Endpoint>(
      resp::Endpoint{*queue_, wall_now, std::string(kVersion), wall_now(), [] { return size_t{1}; }, 0});
  // As the server has it: a little too large is an error that names its field.
  command_limits_.argument_bytes = 2 * config.limits.body_bytes + (size_t{64} << 10);
  command_limits_.command_bytes = 2 * command_limits_.argument_bytes + (size_t{1} << 20);
  return status;
}

Status JournalInProcess::set_topic(const std::string& name, const TopicSettings& said) {
  Settings settings = queue_->settings(name);
  const Settings before = settings;
  const auto about = [&](Error error) { return invalid(fmt::format("topics.{}: {}", name, error.detail)); };
  if (said.attempts) settings.attempts = said.attempts;
  if (!said.backoff.empty()) {
    Result<Backoff> backoff = parse_backoff(said.backoff);
    if (!backoff.ok()) return about(backoff.error());
    settings.backoff = *std::move(backoff);
  }
  if (said.lease) settings.lease = said.lease;
  if (said.concurrency) settings.concurrency = said.concurrency;
  if (said.keep_done) settings.keep_done.time = said.keep_done;
  if (said.keep_dead) settings.keep_dead.time = said.keep_dead;
  if (settings == before) return {};
  const Status status = wait_for(
      [&](Reply<void> reply) { queue_->set_settings(wall_now(), name, settings, std::move(reply)); });
  return status.ok() ? Status() : Status(about(status.error()));
}

template <class Ask>
Status JournalInProcess::wait_for(Ask ask) {
  std::optional<Status> answer;
  ask([&answer](Status status) { answer = std::move(status); });
  while (!answer) {
    is_awake_ = false;
    const Moment next = work();
    if (!answer) sleep_until(next);
  }
  return *answer;
}

Moment JournalInProcess::work() {
  for (int round = 0; round < kMostRounds; ++round) {
    const Moment now = wall_now();
    const Moment next = queue_->tick(now);
    if (!queue_->poll(now)) return next;
  }
  return wall_now();
}

void JournalInProcess::sleep_until(Moment next) {
  auto until = std::chrono::steady_clock::now() +
               std::clamp<std::chrono::milliseconds>(next == kNever ? kLongestWait : next - wall_now(),
                                                     std::chrono::milliseconds::zero(), kLongestWait);
  for (const Peer* peer : peers_) until = std::min(until, peer->next());
  std::unique_lock lock(mutex_);
  awake_.wait_until(lock, until, [this] { return is_awake_.load(); });
}

void JournalInProcess::serve_peers_that_come_and_go() {
  std::vector<Peer*> come;
  std::list<Removal> go;
  {
    const std::lock_guard lock(peers_mutex_);
    come.swap(new_peers_);
    go.swap(removals_);
  }
  for (Peer* peer : come) {
    peer->begin(make_session());
    peers_.push_back(peer);
  }
  for (Removal& each : go) {
    each.peer->end();
    std::erase(peers_, each.peer);
    each.removed.set_value();
  }
}

void JournalInProcess::run() {
  if (begin_thread_ != nullptr) begin_thread_("delayq-engine");
  while (!stops_) {
    is_awake_ = false;
    serve_peers_that_come_and_go();
    bool is_busy = false;
    for (Peer* peer : peers_) is_busy |= peer->turn();
    const Moment next = work();
    for (Peer* peer : peers_) is_busy |= peer->turn();
    if (!is_busy && next > wall_now()) sleep_until(next);
  }
  for (Peer* peer : peers_) peer->end();
  peers_.clear();
  flush();
}

void JournalInProcess::flush() {
  bool is_done = false;
  const auto deadline = std::chrono::steady_clock::now() + kLongestFlush;
  queue_->stop(wall_now(), Millis::zero(), [&is_done](const Result<StopReport>&) { is_done = true; });
  while (!is_done && std::chrono::steady_clock::now() < deadline) {
    is_awake_ = false;
    const Moment next = work();
    if (!is_done) sleep_until(next);
  }
}

}  // namespace

std::shared_ptr<Engine> Engine::open(const Options& options, std::string& error) {
  auto engine = std::make_shared<JournalInProcess>();
  if (const Status status = engine->open(options); !status.ok()) {
    error = line_of(status.error());
    return nullptr;
  }
  engine->start();
  return engine;
}

}  // namespace delayq::embedded
