// Looking at topics, and at the engine itself.
#include "engine/redis/redis_engine.h"

namespace delayq {

void RedisEngine::counts(Moment now, std::string_view topic, Reply<TopicCounts> reply) {
  (void)now;
  (void)topic;
  answer<TopicCounts>(reply, Error{ErrorCode::kUnavailable, "counts", "not yet"});
}

void RedisEngine::topics(Moment now, std::string_view cursor, uint32_t limit, Reply<TopicPage> reply) {
  (void)now;
  (void)cursor;
  (void)limit;
  answer<TopicPage>(reply, Error{ErrorCode::kUnavailable, "topics", "not yet"});
}

void RedisEngine::forecast(Moment now, const ForecastRequest& request, Reply<Forecast> reply) {
  (void)now;
  (void)request;
  answer<Forecast>(reply, Error{ErrorCode::kUnavailable, "forecast", "not yet"});
}

EngineUsage RedisEngine::usage() const { return {}; }

CommitFigures RedisEngine::commits() const { return {}; }

}  // namespace delayq
