#include "app/storage.h"

#include <algorithm>
#include <cassert>
#include <filesystem>

#include <fmt/format.h>

#include "app/version.h"
#include "core/limits.h"
#include "engine/journal/posix_disk.h"
#include "engine/journal/scratch_disk.h"
#include "engine/journal/segments.h"
#include "engine/memory/memory_engine.h"
#include "net/loop.h"
#include "ops/config.h"
#include "resp/writer.h"

namespace delayq {

namespace {

std::chrono::microseconds steady_micros() {
  return std::chrono::duration_cast<std::chrono::microseconds>(net::Loop::steady_now().time_since_epoch());
}

/// Removes a slash at the end.
std::filesystem::path plain(const std::string& directory) {
  const std::filesystem::path path = std::filesystem::path(directory).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

std::filesystem::path backups_beside(const std::string& directory) {
  return plain(directory).parent_path() / "backups";
}

class MemoryStorage final : public Storage {
 public:
  Engine& engine() override { return engine_; }
  std::string describe() override { return "in memory: jobs are gone when the server is"; }

 private:
  MemoryEngine engine_;
};

Result<std::unique_ptr<journal::Disk>> open_disk(const StorageOptions& options) {
  auto disk = options.only_looks ? journal::PosixDisk::open_to_read(options.directory)
                                 : journal::PosixDisk::open(options.directory);
  if (!disk.ok()) return disk.error();
  if (!options.only_looks) return std::unique_ptr<journal::Disk>(*std::move(disk));
  return std::unique_ptr<journal::Disk>(std::make_unique<journal::ScratchDisk>(*std::move(disk)));
}

class JournalStorage final : public Storage {
 public:
  JournalStorage(std::string directory, std::string backups, std::unique_ptr<journal::Disk> disk)
      : directory_(std::move(directory)), shelf_(std::move(backups)), disk_(std::move(disk)) {}

  Status open(journal::JournalOptions options, Moment now, bool must_exist) {
    const auto segments = journal::find_segments(*disk_);
    if (!segments.ok()) return segments.error();
    is_new_ = segments->empty();
    if (is_new_ && must_exist)
      return Error{ErrorCode::kNotFound, "open", fmt::format("{} {}", directory_, kNeverUsed), {}};
    options.backups = &shelf_;
    auto engine = journal::JournalEngine::open(*disk_, io_, options, now);
    if (!engine.ok()) return engine.error();
    engine_ = std::move(*engine);
    return {};
  }

  Engine& engine() override { return *engine_; }
  bool is_new() const override { return is_new_; }
  std::string describe() override {
    std::string text = fmt::format("journal in {}, {} jobs", directory_, engine_->usage().jobs);
    if (engine_->cut_bytes() > 0)
      text += fmt::format(", {} bytes of an unfinished commit cut off", engine_->cut_bytes());
    return text;
  }

 private:
  std::string directory_;
  journal::PosixShelf shelf_;
  std::unique_ptr<journal::Disk> disk_;
  bool is_new_ = false;
  journal::ThreadedIo io_{steady_micros};
  std::unique_ptr<journal::JournalEngine> engine_;
};

}  // namespace

Status check_not_partial(const std::string& directory) {
  const std::string name = plain(directory).filename();
  if (!name.ends_with(kPartialEnding)) return {};
  return in_verb(
      "open",
      invalid(fmt::format("{} is an unfinished backup: a copy is called so until all of it is there. Take a "
                          "finished one, or give the directory another name if it is something else",
                          directory)));
}

Moment Storage::now() const { return net::Loop::now(); }

Result<std::unique_ptr<Storage>> Storage::open(const StorageOptions& options, Moment now, net::Loop* loop) {
  if (options.engine == EngineKind::kRedis) {
    assert(loop != nullptr);
    return open_redis_storage(options, *loop);
  }
  if (options.engine == EngineKind::kMemory)
    return std::unique_ptr<Storage>(std::make_unique<MemoryStorage>());
  if (Status status = check_not_partial(options.directory); !status.ok()) return status.error();
  auto disk = open_disk(options);
  if (!disk.ok()) return disk.error();
  // An absolute path, since clients are told where a copy is.
  const std::string backups = std::filesystem::absolute(
      options.backups.empty() ? backups_beside(options.directory) : std::filesystem::path(options.backups));
  auto storage = std::make_unique<JournalStorage>(options.directory, backups, std::move(*disk));
  journal::JournalOptions journal = options.journal;
  journal.compacts = !options.only_looks;
  if (Status status = storage->open(journal, now, options.must_exist); !status.ok()) return status.error();
  return std::unique_ptr<Storage>(std::move(storage));
}

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
