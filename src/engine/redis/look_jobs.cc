// Looking at jobs.
#include "engine/redis/redis_engine.h"

namespace delayq {

void RedisEngine::get(Moment now, const JobRef& job, Reply<std::optional<FoundJob>> reply) {
  (void)now;
  (void)job;
  answer<std::optional<FoundJob>>(reply, Error{ErrorCode::kUnavailable, "get", "not yet"});
}

void RedisEngine::locate(Moment now, std::string_view id, Reply<std::vector<std::string>> reply) {
  (void)now;
  (void)id;
  answer<std::vector<std::string>>(reply, Error{ErrorCode::kUnavailable, "locate", "not yet"});
}

void RedisEngine::list(Moment now, const ListRequest& request, Reply<JobPage> reply) {
  (void)now;
  (void)request;
  answer<JobPage>(reply, Error{ErrorCode::kUnavailable, "list", "not yet"});
}

}  // namespace delayq
