#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "api/resp/conversation.h"
#include "app/storage.h"
#include "net/loop.h"
#include "queue/queue.h"
#include "resp/value.h"

namespace delayq {

/// A data directory that no server uses, or the Redis of the redis engine, with the commands and replies of a
/// server, but without a socket. No jobs are handed over here.
class LocalServer final : private net::Connection {
 public:
  struct Access {
    bool only_looks = false;  ///< nothing is written, and only TOPICS may be asked
    bool only_reads = false;  ///< nothing is written to a directory; for commands that change nothing
    bool must_exist = false;  ///< a place that was never used fails with kNotFound
  };
  /// The place is a directory, or redis://... with ?prefix=NAME&shards=N behind it. kUnavailable while a
  /// server has the directory, and when Redis does not answer; kNotFound when there is no directory. `option`
  /// is where an operator named it, for advice.
  static Result<std::shared_ptr<LocalServer>> open(const std::string& place, const std::string& option,
                                                   const Access& access);
  ~LocalServer() override;

  /// As in Storage.
  bool is_new() const { return storage_->is_new(); }
  uint32_t shards() const { return storage_->shards(); }

  /// Blocks until there are replies, one for each command in their order; those that are errors are among
  /// them. What is asked together is durable together.
  Result<std::vector<resp::Value>> ask_all(std::span<const std::vector<std::string>> commands);

 private:
  LocalServer() = default;
  Status start();
  void on_output() override {}
  void on_resume() override {}
  /// Moves replies that are complete out of what the conversation has written.
  Status take_replies(std::vector<resp::Value>& replies);
  /// One turn of the queue; waits for the disk when there was nothing to do.
  void turn();
  Moment now() const { return storage_->now(); }

  net::Loop loop_;  // the storage uses it, and is destroyed first
  bool has_sockets_ = false;
  std::mutex mutex_;
  std::condition_variable awake_;
  bool is_awake_ = false;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<resp::Endpoint> host_;
  std::shared_ptr<resp::Conversation> conversation_;
};

}  // namespace delayq
