#include "app/local_server.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "app/redis_storage.h"
#include "app/version.h"
#include "ops/config.h"
#include "resp/writer.h"

namespace delayq {

namespace {

/// The clock is read at least this often.
constexpr Millis kLongestWait{100};

/// Here, user, password and prefix are parts of the URL.
Error without_section(Error error) {
  constexpr std::string_view kSection = "redis.";
  if (error.detail.starts_with(kSection)) error.detail.erase(0, kSection.size());
  return error;
}

/// redis://...?prefix=NAME&shards=N, as the configuration says it.
Result<RedisStorageOptions> redis_of_url(std::string_view url, const std::string& option) {
  const size_t sign = url.find('?');
  Config::Redis said;
  said.url = std::string(url.substr(0, sign));
  std::string_view rest = sign == std::string_view::npos ? std::string_view() : url.substr(sign + 1);
  Config config;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    if (equals == std::string_view::npos || (name != "prefix" && name != "shards"))
      return in_verb("open", invalid("after ? only prefix=NAME and shards=N are allowed"));
    const Status status =
        set_option(config, fmt::format("redis.{}", name), std::string(word.substr(equals + 1)));
    if (!status.ok()) return without_section(status.error());
  }
  said.prefix = config.redis.prefix;
  said.shards = config.redis.shards;
  Result<RedisStorageOptions> options = redis_storage_options(said);
  if (options.ok()) options->names = {option, true};
  return options;
}

/// The storage that a place names, by the form of its text.
Result<StorageOptions> storage_of(const std::string& place, const std::string& option) {
  StorageOptions options;
  if (place.starts_with("redis") && place.find("://") != std::string::npos) {
    auto redis = redis_of_url(place, option);
    if (!redis.ok()) return redis.error();
    options.engine = EngineKind::kRedis;
    options.redis = std::move(*redis);
    return options;
  }
  std::error_code error;
  if (!std::filesystem::is_directory(place, error))
    return Error{ErrorCode::kNotFound, "open", fmt::format("there is no directory {}", place), {}};
  options.directory = place;
  options.journal.seed = random_seed();
  return options;
}

}  // namespace

Result<std::shared_ptr<LocalServer>> LocalServer::open(const std::string& place, const std::string& option,
                                                       const Access& access) {
  auto options = storage_of(place, option);
  if (!options.ok()) return options.error();
  options->only_looks = access.only_looks || (access.only_reads && options->engine == EngineKind::kJournal);
  options->must_exist = access.must_exist;
  std::shared_ptr<LocalServer> server(new LocalServer());
  auto storage = Storage::open(*options, net::Loop::now(), &server->loop_);
  if (!storage.ok()) return storage.error();
  server->storage_ = std::move(*storage);
  server->has_sockets_ = options->engine == EngineKind::kRedis;
  if (Status status = server->start(); !status.ok()) return status.error();
  return server;
}

LocalServer::~LocalServer() {
  if (conversation_ != nullptr) conversation_->hang_up();
}

Status LocalServer::start() {
  storage_->engine().set_wakeup([this] {
    const std::lock_guard lock(mutex_);
    is_awake_ = true;
    awake_.notify_one();
  });
  QueueConfig config;
  config.limits.body_bytes = Limits::kMaxBodyBytes;
  // No job leaves here, and the server that uses this storage later may have a Redis.
  config.redis.is_there = true;
  // Occurrences are made by servers: what is copied here must stay as it is. All that is there can be stored.
  config.makes_occurrences = false;
  config.schedules = QueueConfig::kUnbounded;
  queue_ = std::make_unique<Queue>(storage_->engine(), config, random_seed());
  std::optional<Status> started;
  queue_->start(now(), [&started](Status status) { started = std::move(status); });
  while (!started) turn();
  if (!started->ok()) return *started;
  host_ = std::make_unique<resp::Endpoint>(resp::Endpoint{
      *queue_, [this] { return now(); }, std::string(kVersion), now(), [] { return size_t{1}; }, 0});
  resp::CommandLimits limits;
  limits.argument_bytes = 3 * Limits::kMaxBodyBytes;
  limits.command_bytes = 2 * limits.argument_bytes;
  conversation_ = std::make_shared<resp::Conversation>(*host_, static_cast<net::Connection&>(*this), limits);
  return {};
}

Result<std::vector<resp::Value>> LocalServer::ask_all(std::span<const std::vector<std::string>> commands) {
  std::string bytes;
  for (const std::vector<std::string>& command : commands) {
    const std::vector<std::string_view> words(command.begin(), command.end());
    resp::append_command(bytes, words);
  }
  std::string_view rest = bytes;
  std::vector<resp::Value> replies;
  while (replies.size() < commands.size()) {
    if (!rest.empty()) {
      // A command that is too large ends a conversation, here as on a socket.
      if (conversation_->is_over())
        return Error{ErrorCode::kTooLarge, "ask", "the previous command could not be read", {}};
      rest.remove_prefix(conversation_->read(rest));
    }
    turn();
    if (Status status = take_replies(replies); !status.ok()) return status.error();
  }
  return replies;
}

Status LocalServer::take_replies(std::vector<resp::Value>& replies) {
  std::string& output = conversation_->output();
  std::string_view rest = output;
  for (;;) {
    Result<std::optional<resp::Value>> value = resp::take_reply(rest);
    if (!value.ok()) return value.error();
    if (!*value) break;
    replies.push_back(std::move(**value));
  }
  output.erase(0, output.size() - rest.size());
  return {};
}

void LocalServer::turn() {
  const Moment now = this->now();
  const Moment next = queue_->tick(now);
  const bool is_busy = queue_->poll(now) || next <= now;
  if (has_sockets_) {
    loop_.finish_turn();
    loop_.wait_until(net::Loop::now() + (is_busy ? Millis::zero() : kLongestWait));
    return;
  }
  if (is_busy) return;
  std::unique_lock lock(mutex_);
  awake_.wait_for(lock, kLongestWait, [this] { return is_awake_; });
  is_awake_ = false;
}

}  // namespace delayq
