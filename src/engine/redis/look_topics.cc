// Looking at topics: how much each has, and when it falls due.
#include <algorithm>
#include <map>

#include "engine/redis/redis_engine.h"
#include "engine/redis/scripts.h"
#include "engine/redis/topic_rows.h"

namespace delayq {

using redis::Arguments;
using redis::Gather;
using redis::TopicRows;

namespace {

/// Jobs of one topic that may become ready, or be forgotten, before it is counted.
constexpr uint32_t kCaughtUp = 100;
constexpr uint32_t kListedPerCall = 200;
/// Bins times topics of one call.
constexpr uint32_t kBinsPerCall = 2'000;

}  // namespace

bool RedisEngine::note_topics(uint32_t shard, const resp::Value& answer) {
  if (answer.items.size() < 2) return false;
  const resp::Value& next = answer.items[0];
  if (next.type == resp::Value::Type::kBulk) driving_.set_next(shard, redis::read_moment(next.text));
  const std::vector<resp::Value>& told = answer.items[1].items;
  for (size_t i = 0; i + 1 < told.size(); i += 2) {
    if ((told[i + 1].integer & 1) != 0) note_ready(shard, told[i].text, Outlet::kTopic);
    if ((told[i + 1].integer & 2) != 0) note_ready(shard, told[i].text, Outlet::kCallback);
  }
  return true;
}

void RedisEngine::counts(Moment now, std::string_view topic, Reply<TopicCounts> reply) {
  if (topic.empty()) {
    auto all = Gather<TopicCounts>::make({}, std::move(reply));
    for (uint32_t shard = 0; shard < keys_.shards(); ++shard) count_next(now, shard, {}, all);
    return all->close(answers_);
  }
  auto rows = Gather<TopicRows>::make(
      {}, [reply = std::move(reply), topic = std::string(topic)](const Result<TopicRows>& summed) mutable {
        if (!summed.ok()) return reply(summed.error());
        reply(summed->counts_of(topic));
      });
  for (uint32_t shard = 0; shard < keys_.shards(); ++shard) {
    Arguments arguments = arguments_for(now, shard, topic);
    arguments.number(kCaughtUp);
    run(redis::scripts::kCounts, keys_.topic(shard, topic).all(), arguments,
        rows->expect([this, shard, topic = std::string(topic)](resp::Value& value, TopicRows& sum) -> Status {
          if (!note(shard, topic, value) || !sum.add(topic, value, 2)) return not_understood("counts");
          return {};
        }));
  }
  rows->close(answers_);
}

void RedisEngine::count_next(Moment now, uint32_t shard, std::string_view after,
                             std::shared_ptr<Gather<TopicCounts>> gather) {
  Arguments arguments = arguments_for(now, shard, {});
  arguments.text(after).number(kListedPerCall).number(kCaughtUp);
  Gather<TopicCounts>& all = *gather;
  run(redis::scripts::kTopics, shard_keys(shard).all(), arguments,
      all.expect(
          [this, now, shard, gather = std::move(gather)](resp::Value& value, TopicCounts& sum) -> Status {
            TopicRows rows;
            if (!note_topics(shard, value) || !rows.add_all(value)) return not_understood("topics");
            rows.add_to(sum);
            const std::string_view last = value.items[2].text;
            if (!last.empty()) count_next(now, shard, last, gather);
            return {};
          }));
}

void RedisEngine::topics(Moment now, std::string_view cursor, uint32_t limit, Reply<TopicPage> reply) {
  const uint32_t most = std::min(limit, kListedPerCall);
  if (most == 0) return answer<TopicPage>(reply, TopicPage{});
  auto rows =
      Gather<TopicRows>::make({}, [reply = std::move(reply), most](const Result<TopicRows>& merged) mutable {
        if (!merged.ok()) return reply(merged.error());
        reply(merged->page(most));
      });
  for (uint32_t shard = 0; shard < keys_.shards(); ++shard) {
    Arguments arguments = arguments_for(now, shard, {});
    arguments.text(cursor).number(most).number(options_.only_looks ? 0 : kCaughtUp);
    run(redis::scripts::kTopics, shard_keys(shard).all(), arguments,
        rows->expect([this, shard](resp::Value& value, TopicRows& merged) -> Status {
          if (!note_topics(shard, value) || !merged.add_all(value)) return not_understood("topics");
          return {};
        }));
  }
  rows->close(answers_);
}

struct RedisEngine::Forecasting {
  Moment now{};
  std::string topic;
  std::vector<Moment> edges;
  uint32_t topics_per_call = 1;
};

void RedisEngine::forecast(Moment now, const ForecastRequest& request, Reply<Forecast> reply) {
  Forecast empty;
  empty.bins.resize(request.bins);
  if (request.bins == 0 || request.from >= request.to) return answer<Forecast>(reply, std::move(empty));
  auto forecasting = std::make_shared<Forecasting>();
  forecasting->now = now;
  forecasting->topic = request.topic;
  forecasting->topics_per_call = std::clamp(kBinsPerCall / request.bins, 1U, kListedPerCall);
  // A bin has the moments whose distance from the start, times the bins, divided by the span, is its number.
  const auto span = static_cast<uint64_t>((request.to - request.from).count());
  for (uint64_t bin = 0; bin <= request.bins; ++bin) {
    const uint64_t offset = (span * bin + request.bins - 1) / request.bins;
    forecasting->edges.push_back(request.from + Millis{static_cast<int64_t>(offset)});
  }
  auto gather = Gather<Forecast>::make(std::move(empty), std::move(reply));
  for (uint32_t shard = 0; shard < keys_.shards(); ++shard) forecast_next(forecasting, shard, {}, gather);
  gather->close(answers_);
}

void RedisEngine::forecast_next(const std::shared_ptr<Forecasting>& forecasting, uint32_t shard,
                                std::string_view after, std::shared_ptr<Gather<Forecast>> gather) {
  Arguments arguments = arguments_for(forecasting->now, shard, forecasting->topic);
  arguments.text(after).number(forecasting->topics_per_call);
  for (const Moment edge : forecasting->edges) arguments.moment(edge);
  Gather<Forecast>& all = *gather;
  run(redis::scripts::kForecast, shard_keys(shard).all(), arguments,
      all.expect([this, forecasting, shard, gather = std::move(gather)](resp::Value& value,
                                                                        Forecast& sum) -> Status {
        if (value.items.size() != sum.bins.size() + 1) return not_understood("forecast");
        for (size_t bin = 0; bin < sum.bins.size(); ++bin)
          sum.bins[bin] += static_cast<uint64_t>(value.items[bin + 1].integer);
        const std::string_view last = value.items[0].text;
        if (!last.empty()) forecast_next(forecasting, shard, last, gather);
        return {};
      }));
}

}  // namespace delayq
