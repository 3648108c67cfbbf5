// The queue's notes on topics, and what concerns the deployment as a whole.
#include "engine/redis/redis_engine.h"

namespace delayq {

void RedisEngine::store_settings(std::string_view topic, std::string_view settings, Reply<bool> reply) {
  (void)topic;
  (void)settings;
  answer<bool>(reply, Error{ErrorCode::kUnavailable, "store_settings", "not yet"});
}

void RedisEngine::load_settings(Reply<std::vector<TopicSettings>> reply) {
  answer<std::vector<TopicSettings>>(reply, Error{ErrorCode::kUnavailable, "load_settings", "not yet"});
}

void RedisEngine::flush(Reply<bool> reply) {
  answer<bool>(reply, Error{ErrorCode::kUnavailable, "flush", "not yet"});
}

void RedisEngine::backup(std::string_view name, Reply<BackupReport> reply) {
  (void)name;
  answer<BackupReport>(reply, Error{ErrorCode::kUnavailable, "backup", "not yet"});
}

}  // namespace delayq
