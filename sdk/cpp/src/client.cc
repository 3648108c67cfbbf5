#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <thread>
#include <utility>

#include <delayq/client.h>

#include "sdk/cpp/src/client_core.h"
#include "sdk/cpp/src/local_pipe.h"

namespace delayq {
inline namespace v1 {

namespace {

constexpr std::array<std::string_view, 13> kCodeNames{
    "invalid",     "too_large", "conflict",     "not_found", "stale_lease", "overloaded", "disk_full",
    "unavailable", "stopping",  "unauthorized", "forbidden", "corrupt",     "internal"};
constexpr std::array<std::string_view, 5> kDequeued{"cancelled", "reserved", "done", "dead", "unknown"};
/// Jobs and bytes that enqueue_many() sends as one call.
constexpr std::size_t kChunkJobs = 1024;
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr std::chrono::milliseconds kSpare{5000};  ///< of a blocking call, beyond what its pipe takes

void log_to_stderr(LogLevel level, std::string_view what) {
  if (level < LogLevel::warning) return;
  std::fprintf(stderr, "delayq: %.*s\n", static_cast<int>(what.size()), what.data());
}

void check_not_own_thread() {
  if (sdk::Pipe::is_own_thread())
    throw Error(ErrorCode::invalid, "a blocking function was called in a callback; use enqueue_async there");
}

/// One job of enqueue_async().
class AsyncPush final : public sdk::Call {
 public:
  AsyncPush(std::string id, EnqueueCallback done) : id_(std::move(id)), done_(std::move(done)) {}
  void on_reply(std::uint32_t /*index*/, sdk::Value&& value) override {
    if (value.is_error()) return done_({{}, sdk::error_of(value.text)});
    done_({std::move(id_), {}});
  }
  void on_failure(std::uint32_t /*index*/, const Error& error) override { done_({{}, error}); }
  bool needs_text() const override { return false; }

 private:
  std::string id_;
  EnqueueCallback done_;
};

/// The results of one enqueue_many().
struct Batch {
  std::vector<EnqueueResult> results;
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t calls = 0;  ///< on their way
};

/// A part of the jobs of an enqueue_many().
class BatchPush final : public sdk::Call {
 public:
  BatchPush(std::shared_ptr<Batch> batch, sdk::Pipe::Spare memory, std::size_t jobs_left)
      : batch_(std::move(batch)) {
    places_.reserve(std::min(jobs_left, kChunkJobs));
    commands = 0;
    bytes = std::move(memory.bytes);
    jobs = std::move(memory.jobs);
  }
  bool is_plain() const { return !jobs.empty(); }
  void add(std::size_t place) { places_.push_back(place); }
  void on_reply(std::uint32_t index, sdk::Value&& value) override {
    if (value.is_error()) on_failure(index, sdk::error_of(value.text));
  }
  bool needs_text() const override { return false; }
  void on_failure(std::uint32_t index, const Error& error) override {
    EnqueueResult& result = batch_->results[places_[index]];
    result.id.clear();
    result.error = error;
  }
  void on_end() override {
    const std::lock_guard lock(batch_->mutex);
    if (--batch_->calls == 0) batch_->changed.notify_all();
  }

 private:
  std::shared_ptr<Batch> batch_;
  std::vector<std::size_t> places_;
};

}  // namespace

std::string_view name_of(ErrorCode code) noexcept {
  const auto index = static_cast<std::size_t>(code);
  return index < kCodeNames.size() ? kCodeNames[index] : "internal";
}

std::string_view name_of(Dequeued result) noexcept {
  const auto index = static_cast<std::size_t>(result);
  return index < kDequeued.size() ? kDequeued[index] : "unknown";
}

Error::~Error() = default;
RetryIn::~RetryIn() = default;
Dead::~Dead() = default;

bool Error::retryable() const noexcept {
  switch (code_) {
    case ErrorCode::overloaded:
    case ErrorCode::disk_full:
    case ErrorCode::unavailable:
    case ErrorCode::stopping:
      return true;
    default:
      return false;
  }
}

// ---- ClientCore

ClientCore::ClientCore(std::string_view address, ClientOptions options)
    : log_(options.log ? options.log : log_to_stderr),
      timeout_(options.timeout),
      retry_for_(options.retry_for) {
  remote_ = sdk::parse_address(address);
  remote_->options = std::move(options);
  remote_->options.log = log_;
  pipe_ = make_pipe();
}

ClientCore::ClientCore(const std::string& directory, EmbeddedOptions options)
    : log_(options.log ? options.log : log_to_stderr),
      timeout_(ClientOptions{}.timeout),
      retry_for_(options.retry_for),
      max_payload_(options.max_payload) {
  embedded::Options engine;
  engine.directory = directory;
  engine.syncs = options.sync;
  engine.max_payload = options.max_payload;
  engine.max_jobs = options.max_jobs;
  engine.min_free_disk = options.min_free_disk;
  engine.begin_thread = sdk::LocalPipe::begin_engine_thread;
  for (auto& [name, topic] : options.topics)
    engine.topics[name] = {topic.attempts,    topic.backoff,   topic.lease,
                           topic.concurrency, topic.keep_done, topic.keep_dead};
  std::string problem;
  {
    const sdk::NoSignals no_signals;
    engine_ = embedded::Engine::open(engine, problem);
  }
  if (engine_ == nullptr) throw sdk::error_of(problem);
  pipe_ = make_pipe();
}

ClientCore::~ClientCore() {
  if (!sdk::Pipe::is_own_thread()) {
    close();
    return;
  }
  // The last copy goes in a callback: the thread cannot wait for itself.
  std::thread([pipe = std::move(pipe_), engine = std::move(engine_)]() mutable {
    pipe->stop();
    pipe.reset();
    engine.reset();
  }).detach();
}

std::unique_ptr<sdk::Pipe> ClientCore::make_pipe() const {
  if (engine_ != nullptr) return std::make_unique<sdk::LocalPipe>(engine_);
  return std::make_unique<sdk::NetPipe>(*remote_);
}

void ClientCore::close() {
  const std::lock_guard lock(closing_);
  pipe_->drain(last_moment());
  pipe_->stop();
}

void ClientCore::set_times(sdk::Call& call) const {
  call.retry_until = sdk::Steady::now() + retry_for_;
  call.timeout = timeout_;
}

sdk::Steady::time_point ClientCore::last_moment() const {
  return sdk::Steady::now() + retry_for_ + 2 * timeout_ + kSpare;
}

sdk::Value ClientCore::ask(const sdk::Words& words, bool is_safe_to_repeat, sdk::Value::Type type,
                           bool may_be_null) {
  check_not_own_thread();
  const sdk::OneReply reply;
  std::unique_ptr<sdk::Call> call = reply.make_call();
  words.append_to(call->bytes);
  call->is_safe_to_repeat = is_safe_to_repeat;
  set_times(*call);
  pipe_->send(std::move(call));
  sdk::Value value = sdk::checked(reply.wait(last_moment()));
  // In process the commands are those of RESP2, which has lists for maps.
  const bool is_map =
      type == sdk::Value::Type::kMap && engine_ != nullptr && value.type == sdk::Value::Type::kList;
  if (value.type != type && !is_map && !(may_be_null && value.is_null()))
    throw Error(ErrorCode::internal, "the server sent something that is no answer to this command");
  return value;
}

// ---- Client

Client::Client(std::string_view address, ClientOptions options)
    : core_(std::make_shared<ClientCore>(address, std::move(options))) {}
Client::Client(std::shared_ptr<ClientCore> core) : core_(std::move(core)) {}
Client::~Client() = default;
Client::Client(const Client&) = default;
Client& Client::operator=(const Client&) = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

Client Client::open(const std::string& directory, EmbeddedOptions options) {
  return Client(std::make_shared<ClientCore>(directory, std::move(options)));
}

void Client::close() { core_->close(); }

std::string Client::enqueue(std::string_view topic, std::string_view id, std::string_view payload,
                            const EnqueueOptions& options) {
  std::string own = id.empty() ? sdk::make_id() : std::string(id);
  const sdk::Push push(*core_, topic, own, payload, options);
  // The answer to a second one would be about the first, unless nobody else can have this id.
  core_->ask(push.words(), id.empty() || options.on_conflict != OnConflict::reject, sdk::Value::Type::kText);
  return own;
}

void Client::enqueue_async(const NewJob& job, EnqueueCallback done) {
  std::string id = job.id.empty() ? sdk::make_id() : job.id;
  std::unique_ptr<AsyncPush> call;
  try {
    const sdk::Push push(*core_, job.topic, id, job.payload, job.options);
    std::string bytes;
    push.words().append_to(bytes);
    call = std::make_unique<AsyncPush>(std::move(id), std::move(done));
    call->bytes = std::move(bytes);
  } catch (const Error& error) {
    return done({{}, error});
  }
  call->is_safe_to_repeat = job.id.empty() || job.options.on_conflict != OnConflict::reject;
  core_->set_times(*call);
  core_->pipe().send(std::move(call));
}

std::future<std::string> Client::enqueue_async(const NewJob& job) {
  auto promise = std::make_shared<std::promise<std::string>>();
  std::future<std::string> future = promise->get_future();
  enqueue_async(job, [promise](EnqueueResult result) {
    if (result.ok()) {
      promise->set_value(std::move(result.id));
    } else {
      promise->set_exception(std::make_exception_ptr(*result.error));
    }
  });
  return future;
}

std::vector<EnqueueResult> Client::enqueue_many(std::span<const NewJob> jobs) {
  check_not_own_thread();
  auto batch = std::make_shared<Batch>();
  batch->results.resize(jobs.size());
  std::unique_ptr<BatchPush> chunk;
  const auto send = [&] {
    if (chunk == nullptr) return;
    if (chunk->commands == 0) return chunk.reset();  // its only job was refused
    core_->set_times(*chunk);
    {
      const std::lock_guard lock(batch->mutex);
      ++batch->calls;
    }
    core_->pipe().send(std::move(chunk));
    chunk.reset();
  };
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const NewJob& job = jobs[i];
    // The chunk before it may be answered at any time, but it does not touch this result.
    EnqueueResult& result = batch->results[i];
    try {
      result.id = job.id.empty() ? sdk::make_id() : job.id;
      const bool is_plain = sdk::needs_no_words(*core_, job.options);
      const bool is_safe = job.id.empty() || job.options.on_conflict != OnConflict::reject;
      if (chunk != nullptr && (chunk->is_safe_to_repeat != is_safe || chunk->is_plain() != is_plain)) send();
      if (chunk == nullptr) {
        chunk = std::make_unique<BatchPush>(batch, core_->pipe().take_spare(), jobs.size() - i);
        chunk->is_safe_to_repeat = is_safe;
      }
      if (is_plain) {
        sdk::append_job(*chunk, *core_, job.topic, result.id, job.payload, job.options);
      } else {
        const sdk::Push push(*core_, job.topic, result.id, job.payload, job.options);
        push.words().append_to(chunk->bytes);
      }
      chunk->add(i);
      ++chunk->commands;
    } catch (const Error& error) {
      result.id.clear();
      result.error = error;
    }
    if (chunk != nullptr && (chunk->commands >= kChunkJobs || chunk->bytes.size() >= kChunkBytes)) send();
  }
  send();
  std::unique_lock lock(batch->mutex);
  if (!batch->changed.wait_until(lock, core_->last_moment(), [&] { return batch->calls == 0; }))
    throw Error(ErrorCode::unavailable,
                "the jobs were not answered in time; it is not known which are stored");
  return std::move(batch->results);
}

Dequeued Client::dequeue(std::string_view topic, std::string_view id) {
  sdk::check_length("topic", topic);
  sdk::check_length("id", id);
  sdk::Words words;
  words << "CANCEL" << topic << id;
  const sdk::Value value = core_->ask(words, false, sdk::Value::Type::kText);
  const auto* const found = std::find(kDequeued.begin(), kDequeued.end(), value.text);
  if (found == kDequeued.end()) throw Error(ErrorCode::internal, "CANCEL was answered by " + value.text);
  return static_cast<Dequeued>(found - kDequeued.begin());
}

std::uint64_t Client::cancel_group(std::string_view group) {
  sdk::check_length("group", group);
  sdk::Words words;
  words << "CANCELGROUP" << group;
  return static_cast<std::uint64_t>(core_->ask(words, false, sdk::Value::Type::kInteger).integer);
}

void Client::reschedule(std::string_view topic, std::string_view id, const When& when) {
  if (when.process_in.has_value() == when.process_at.has_value())
    throw Error(ErrorCode::invalid, "process_in, process_at: give exactly one of them");
  sdk::check_length("topic", topic);
  sdk::check_length("id", id);
  sdk::Words words;
  words << "RESCHEDULE" << topic << id;
  if (when.process_in) {
    words.millis(*when.process_in);
  } else {
    words << "AT";
    words.moment(*when.process_at);
  }
  core_->ask(words, false, sdk::Value::Type::kText);
}

std::optional<JobInfo> Client::get(std::string_view topic, std::string_view id) {
  sdk::check_length("topic", topic);
  sdk::check_length("id", id);
  sdk::Words words;
  words << "GET" << topic << id;
  const sdk::Value value = core_->ask(words, true, sdk::Value::Type::kMap, true);
  if (value.is_null()) return std::nullopt;
  JobInfo job;
  job.topic = value.text_of("topic");
  job.id = value.text_of("id");
  job.state = value.text_of("state");
  job.payload = value.text_of("body");
  job.due_at = sdk::moment_of(value.number_of("due_ms"));
  job.pushed_at = sdk::moment_of(value.number_of("pushed_ms"));
  job.attempts = static_cast<std::uint32_t>(value.number_of("attempts"));
  job.priority = static_cast<std::uint32_t>(value.number_of("priority"));
  job.group = value.text_of("group");
  if (const std::int64_t until = value.number_of("until_ms"); until != 0) job.until = sdk::moment_of(until);
  job.callback = value.text_of("callback");
  job.outcome = value.text_of("outcome");
  job.cancel_requested = value.number_of("cancel_requested") != 0;
  job.headers = sdk::headers_of(value.find("headers"));
  return job;
}

}  // namespace v1
}  // namespace delayq
