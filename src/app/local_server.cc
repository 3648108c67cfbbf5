#include "app/local_server.h"

#include <filesystem>

#include <fmt/format.h>

#include "app/random_seed.h"
#include "app/version.h"
#include "net/loop.h"
#include "resp/writer.h"

namespace delayq {

namespace {

/// No longer than this without a look at the clock.
constexpr Millis kLongestWait{100};

}  // namespace

Result<std::shared_ptr<LocalServer>> LocalServer::open(const std::string& directory) {
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) {
    return Error{ErrorCode::kNotFound, "open", fmt::format("there is no directory {}", directory), {}};
  }
  StorageOptions options;
  options.directory = directory;
  options.journal.seed = random_seed();
  auto storage = Storage::open(options, net::Loop::now());
  if (!storage.ok()) return storage.error();
  std::shared_ptr<LocalServer> server(new LocalServer());
  server->storage_ = std::move(*storage);
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
  queue_ = std::make_unique<Queue>(storage_->engine(), config, random_seed());
  std::optional<Status> started;
  queue_->start(net::Loop::now(), [&started](Status status) { started = std::move(status); });
  while (!started) turn();
  if (!started->ok()) return *started;
  host_ =
      std::make_unique<resp::Host>(resp::Host{*queue_, [] { return net::Loop::now(); }, std::string(kVersion),
                                              net::Loop::now(), [] { return size_t{1}; }, 0});
  resp::CommandLimits limits;
  limits.argument_bytes = 3 * Limits::kMaxBodyBytes;
  limits.command_bytes = 2 * limits.argument_bytes;
  conversation_ = std::make_shared<resp::Conversation>(*host_, static_cast<net::Connection&>(*this), limits);
  return {};
}

Result<resp::Value> LocalServer::ask(const std::vector<std::string>& command) {
  std::string bytes;
  const std::vector<std::string_view> words(command.begin(), command.end());
  resp::append_command(bytes, words);
  std::string_view rest = bytes;
  while (!rest.empty()) {
    // A command that is too large ends a conversation, here as on a socket.
    if (conversation_->is_over())
      return Error{ErrorCode::kTooLarge, "ask", "the command before this one could not be read", {}};
    rest.remove_prefix(conversation_->read(rest));
    turn();
  }
  std::string& output = conversation_->output();
  for (;;) {
    std::string_view reply = output;
    Result<std::optional<resp::Value>> value = resp::take_reply(reply);
    if (!value.ok()) return value.error();
    if (*value) {
      output.erase(0, output.size() - reply.size());
      return std::move(**value);
    }
    turn();
  }
}

void LocalServer::turn() {
  const Moment now = net::Loop::now();
  const Moment next = queue_->tick(now);
  if (queue_->poll(now) || next <= now) return;
  std::unique_lock lock(mutex_);
  awake_.wait_for(lock, kLongestWait, [this] { return is_awake_; });
  is_awake_ = false;
}

}  // namespace delayq
