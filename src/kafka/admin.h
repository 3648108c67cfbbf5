#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "kafka/client_options.h"

namespace delayq::kafka {

struct NewTopic {
  std::string name;
  int32_t partitions = 1;
  int32_t replication = -1;                                   ///< -1: as the brokers' default says
  std::vector<std::pair<std::string, std::string>> config{};  ///< "retention.ms", and so on
};

struct TopicFacts {
  std::string name;
  int32_t partitions = 0;
  int32_t replication = 0;             ///< of the first partition
  std::optional<Millis> retention{};   ///< retention.ms; none: kept for ever
  std::optional<int64_t> max_bytes{};  ///< retention.bytes; none: no limit
  std::string cleanup = "delete";      ///< cleanup.policy: delete, compact, or both with a comma
};

/// Creates and describes topics. Its calls block until the answer or the timeout: call them at the start, or
/// on a thread of your own. Errors: kUnavailable (no broker answers, or accepts the client), kForbidden,
/// kInvalid; the detail says which topic.
class Admin {
 public:
  virtual ~Admin() = default;

  /// Creates the topics that do not exist. One that exists is no error, and is not changed.
  virtual Status create(std::span<const NewTopic> topics, Millis timeout) = 0;
  /// Facts of those topics that exist, in the order of the names. A topic that was created a moment ago may
  /// be left out: not all brokers know it at the same time.
  virtual Result<std::vector<TopicFacts>> describe(std::span<const std::string> names, Millis timeout) = 0;
};

/// Fails for options that check_options() refuses.
Result<std::unique_ptr<Admin>> open_admin(const ClientOptions& options);

}  // namespace delayq::kafka
