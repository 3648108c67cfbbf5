#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/resp/conversation.h"
#include "app/storage.h"
#include "queue/queue.h"
#include "resp/value.h"

namespace delayq {

/// A data directory that no server uses, asked as if one did: the same commands and replies, without a
/// socket. Nothing is handed over here, so nothing falls due but what is asked for.
class LocalServer final : private net::Connection {
 public:
  /// kUnavailable while a server has the directory; kNotFound when there is none.
  static Result<std::shared_ptr<LocalServer>> open(const std::string& directory);
  ~LocalServer() override;

  /// Blocks until there is a reply.
  Result<resp::Value> ask(const std::vector<std::string>& command);

 private:
  LocalServer() = default;
  Status start();
  void on_output() override {}
  void on_resume() override {}
  /// One turn of the queue; waits for the disk when there was nothing to do.
  void turn();

  std::mutex mutex_;
  std::condition_variable awake_;
  bool is_awake_ = false;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<resp::Host> host_;
  std::shared_ptr<resp::Conversation> conversation_;
};

}  // namespace delayq
