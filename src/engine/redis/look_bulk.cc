// Verbs that change many jobs of a group, a topic or a list.
#include "engine/redis/redis_engine.h"

namespace delayq {

void RedisEngine::restore(Moment now, std::span<const RestoreRequest> jobs,
                          Reply<std::vector<PushAnswer>> reply) {
  (void)now;
  (void)jobs;
  answer<std::vector<PushAnswer>>(reply, Error{ErrorCode::kUnavailable, "restore", "not yet"});
}

void RedisEngine::cancel_group(Moment now, std::string_view group, uint32_t max,
                               Reply<GroupCancelAnswer> reply) {
  (void)now;
  (void)group;
  (void)max;
  answer<GroupCancelAnswer>(reply, Error{ErrorCode::kUnavailable, "cancel_group", "not yet"});
}

void RedisEngine::redrive(Moment now, std::string_view topic, std::span<const std::string_view> ids,
                          Reply<uint64_t> reply) {
  (void)now;
  (void)topic;
  (void)ids;
  answer<uint64_t>(reply, Error{ErrorCode::kUnavailable, "redrive", "not yet"});
}

void RedisEngine::redrive_oldest(Moment now, std::string_view topic, uint32_t max, Reply<uint64_t> reply) {
  (void)now;
  (void)topic;
  (void)max;
  answer<uint64_t>(reply, Error{ErrorCode::kUnavailable, "redrive_oldest", "not yet"});
}

void RedisEngine::purge(Moment now, std::string_view topic, JobState state, uint32_t max,
                        Reply<uint64_t> reply) {
  (void)now;
  (void)topic;
  (void)state;
  (void)max;
  answer<uint64_t>(reply, Error{ErrorCode::kUnavailable, "purge", "not yet"});
}

}  // namespace delayq
