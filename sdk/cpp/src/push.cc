// What is common to the commands of a client: the words of a PUSH, and waiting for one reply.
#include <algorithm>
#include <utility>

#include "sdk/cpp/src/client_core.h"

namespace delayq::sdk {

namespace {

/// Longer texts are refused before they are sent: a server would close the connection.
constexpr std::size_t kLongestField = std::size_t{64} << 10;
constexpr std::size_t kMostHeaders = 1000;

/// Whether two names of headers count as the same, as job-life.md says.
bool is_same_name(std::string_view a, std::string_view b) {
  const auto plain = [](char c) {
    if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
    return c == '_' || c == '.' ? '-' : c;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char left, char right) { return plain(left) == plain(right); });
}

bool has_header(const Headers& headers, std::string_view name) {
  return std::any_of(headers.begin(), headers.end(),
                     [&](const auto& each) { return is_same_name(each.first, name); });
}

}  // namespace

thread_local const Headers* running_headers = nullptr;

void check_length(std::string_view field, std::string_view text) {
  if (text.size() > kLongestField)
    throw Error(ErrorCode::invalid,
                std::string(field) + ": has " + std::to_string(text.size()) + " bytes, which is too long");
}

void append_options(Words& words, const ClientCore& core, const EnqueueOptions& options) {
  if (options.priority) (words << "PRI").number(*options.priority);
  if (options.retry) (words << "ATTEMPTS").number(*options.retry);
  if (!options.backoff.empty()) {
    check_length("backoff", options.backoff);
    words << "BACKOFF" << options.backoff;
  }
  if (options.timeout) (words << "LEASE").millis(*options.timeout);
  if (!options.group.empty()) {
    check_length("group", options.group);
    words << "GROUP" << options.group;
  }
  if (!options.callback.empty()) {
    if (core.is_embedded())
      throw Error(ErrorCode::invalid,
                  "callback: an embedded queue makes no HTTP calls; use a worker, or a server");
    check_length("callback", options.callback);
    words << "CALLBACK" << options.callback;
  }
  if (options.headers.size() > kMostHeaders)
    throw Error(ErrorCode::too_large, "headers: at most 64 are allowed");
  for (const auto& [name, value] : options.headers) {
    check_length("headers", name);
    check_length("headers." + name, value);
    words << "HEADER" << name << value;
  }
  if (running_headers == nullptr || has_header(options.headers, "traceparent")) return;
  for (const std::string_view name : {"traceparent", "tracestate"}) {
    for (const auto& [own, value] : *running_headers) {
      if (is_same_name(own, name) && !has_header(options.headers, name)) words << "HEADER" << name << value;
    }
  }
}

namespace {

/// Throws for what no server can be asked.
void check_job(const ClientCore& core, std::string_view topic, std::string_view id, std::string_view payload,
               const EnqueueOptions& options) {
  if (options.process_in && options.process_at)
    throw Error(ErrorCode::invalid, "process_in, process_at: give one of them, not both");
  check_length("topic", topic);
  check_length("id", id);
  if (payload.size() > core.max_payload())
    throw Error(ErrorCode::too_large, "body has " + std::to_string(payload.size()) + " bytes: at most " +
                                          std::to_string(core.max_payload()) + " are allowed");
  if (options.on_conflict > OnConflict::reject)
    throw Error(ErrorCode::invalid, "on_conflict: use replace, keep or reject");
}

}  // namespace

bool needs_no_words(const ClientCore& core, const EnqueueOptions& options) {
  return core.is_embedded() && options.backoff.empty() && options.callback.empty() &&
         options.headers.empty() && running_headers == nullptr;
}

void append_job(Call& call, const ClientCore& core, std::string_view topic, std::string_view id,
                std::string_view payload, const EnqueueOptions& options) {
  check_job(core, topic, id, payload, options);
  check_length("group", options.group);
  embedded::PushJob& job = call.jobs.emplace_back();
  job.begin = call.bytes.size();
  const auto append = [&call](std::string_view text) {
    call.bytes += text;
    return static_cast<std::uint32_t>(text.size());
  };
  job.topic = append(topic);
  job.id = append(id);
  call.bytes += payload;
  job.body = payload.size();
  job.group = append(options.group);
  job.delay = options.process_in;
  if (options.process_at) job.at_ms = unix_ms_of(*options.process_at);
  job.priority = options.priority;
  job.attempts = options.retry;
  job.lease = options.timeout;
  job.on_conflict = options.on_conflict == OnConflict::replace ? embedded::Conflict::kReplace
                    : options.on_conflict == OnConflict::keep  ? embedded::Conflict::kKeep
                                                               : embedded::Conflict::kReject;
}

Push::Push(const ClientCore& core, std::string_view topic, std::string_view id, std::string_view payload,
           const EnqueueOptions& options) {
  check_job(core, topic, id, payload, options);
  words_ << "PUSH" << topic;
  if (options.process_in) {
    words_.millis(*options.process_in);
  } else {
    words_ << "0";
  }
  words_ << payload << "ID" << id;
  if (options.process_at) (words_ << "AT").moment(*options.process_at);
  append_options(words_, core, options);
  switch (options.on_conflict) {
    case OnConflict::replace:
      words_ << "REPLACE";
      break;
    case OnConflict::keep:
      words_ << "KEEP";
      break;
    case OnConflict::reject:
      break;
  }
}

Time moment_of(std::int64_t unix_ms) { return Time(std::chrono::milliseconds(unix_ms)); }

Headers headers_of(const Value* map) {
  Headers headers;
  if (map == nullptr) return headers;
  for (std::size_t i = 0; i + 1 < map->items.size(); i += 2)
    headers[map->items[i].text] = map->items[i + 1].text;
  return headers;
}

Value checked(Value value) {
  if (value.is_error()) throw error_of(value.text);
  return value;
}

// ---- OneReply

struct OneReply::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_there = false;
  Value value{};
  std::optional<Error> error{};
};

class OneReply::Waiting final : public Call {
 public:
  explicit Waiting(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void on_reply(std::uint32_t /*index*/, Value&& value) override {
    const std::lock_guard lock(state_->mutex);
    state_->value = std::move(value);
    state_->is_there = true;
    state_->changed.notify_one();
  }
  void on_failure(std::uint32_t /*index*/, const Error& error) override {
    const std::lock_guard lock(state_->mutex);
    state_->error = error;
    state_->is_there = true;
    state_->changed.notify_one();
  }

 private:
  std::shared_ptr<State> state_;
};

std::shared_ptr<OneReply::State> OneReply::make_state() { return std::make_shared<State>(); }

std::unique_ptr<Call> OneReply::make_call() const { return std::make_unique<Waiting>(state_); }

Value OneReply::wait(Steady::time_point deadline) const {
  std::unique_lock lock(state_->mutex);
  if (!state_->changed.wait_until(lock, deadline, [this] { return state_->is_there; }))
    throw Error(ErrorCode::unavailable, "there was no answer in time; it is not known what was done");
  if (state_->error) throw Error(*state_->error);
  return std::move(state_->value);
}

bool OneReply::is_there() const {
  const std::lock_guard lock(state_->mutex);
  return state_->is_there;
}

}  // namespace delayq::sdk
