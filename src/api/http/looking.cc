// Looking around.
#include <algorithm>

#include <fmt/format.h>

#include "api/http/conversation.h"
#include "api/http/openapi.h"
#include "api/visible_topics.h"
#include "core/moment.h"
#include "json/reader.h"
#include "queue/job_options.h"

namespace delayq::http {

namespace {

void write_counts(json::Writer& json, const TopicCounts& counts) {
  json.key("counts").begin_object();
  for (size_t i = 0; i < kJobStateCount; ++i) {
    json.key(name_of(static_cast<JobState>(i))).number(counts.by_state[i]);
  }
  json.end_object();
  if (counts.oldest_ready) json.key("oldest_ready_at").text(format_moment(*counts.oldest_ready));
}

void write_tallies(json::Writer& json, const Tallies& tallies, const Lateness& lateness, uint64_t waiters) {
  json.key("since_start").begin_object();
  for (size_t i = 0; i < kTallyCount; ++i) json.key(kTallyNames[i]).number(tallies.of(static_cast<Tally>(i)));
  json.end_object();
  // What is above all buckets is shown as the first number above them.
  static constexpr Millis kMost = Lateness::upper_bound(Lateness::kBuckets - 2) + Millis{1};
  const auto quantile = [&lateness](double part) {
    return static_cast<uint64_t>(std::min(lateness.quantile(part), kMost).count());
  };
  json.key("lateness_ms").begin_object().key("p50").number(quantile(0.5));
  json.key("p99").number(quantile(0.99)).end_object();
  json.key("waiters").number(waiters);
}

/// Leaves no topic with labels of its own: all are among the others, when there are any.
void merge_all(TopicSummaries& page) {
  if (!page.topics.empty()) page.cursor = page.topics.front().topic;
  page.topics.clear();
}

}  // namespace

void write_topic(json::Writer& json, const TopicSummary& topic) {
  json.begin_object().key("topic").text(topic.topic);
  write_counts(json, topic.counts);
  write_tallies(json, topic.tallies, topic.lateness, topic.waiters);
  json.key("paused").boolean(topic.paused).end_object();
}

void write_totals(json::Writer& json, const TotalStats& stats) {
  json.begin_object();
  write_counts(json, stats.counts);
  write_tallies(json, stats.tallies, stats.lateness, stats.waiters);
  json.key("jobs").number(stats.usage.jobs).key("topics").number(stats.usage.topics);
  json.key("memory_bytes").number(stats.usage.memory_bytes);
  json.key("disk_bytes").number(stats.usage.disk_bytes);
  json.key("live_bytes").number(stats.usage.live_bytes);
  json.key("commits").number(stats.usage.commits).end_object();
}

void write_body(json::Writer& json, const Job& job) {
  const std::string_view type =
      job.options.empty() ? std::string_view() : decode_job_options(job.options).content_type;
  if (type.empty() && json::parse(job.body).ok()) {
    json.key("body").raw(job.body);
    return;
  }
  json.bytes("body", job.body);
  if (!type.empty()) json.key("content_type").text(type);
}

void write_job(json::Writer& json, const Job& job, bool with_body) {
  json.begin_object().key("topic").text(job.topic).key("id").text(job.id).key("state").text(
      name_of(job.state));
  if (with_body) write_body(json, job);
  json.key("due_at").text(format_moment(job.due)).key("pushed_at").text(format_moment(job.pushed));
  json.key("attempts").number(uint64_t{job.attempts}).key("priority").number(uint64_t{job.priority});
  if (!job.group.empty()) json.key("group").text(job.group);
  if (job.state == JobState::kReserved) json.key("lease_until").text(format_moment(job.until));
  if (job.state == JobState::kDone || job.state == JobState::kDead)
    json.key("kept_until").text(format_moment(job.until));
  if (job.outlet == Outlet::kCallback) json.key("callback").text(decode_job_options(job.options).callback);
  if (!job.outcome.empty()) json.key("outcome").text(job.outcome);
  if (job.cancel_requested) json.key("cancel_requested").boolean(true);
  json.end_object();
}

Status Conversation::get(const Call& call) {
  if (Status status = Fields::expect_none(call.target.query); !status.ok()) return status;
  queue_.get(now_, {call.names[0], call.names[1]},
             [self = self(), place = reserve()](const Result<std::optional<FoundJob>>& found) {
               if (!found.ok()) return self->problem(place, found.error());
               if (!*found)
                 return self->problem(place, {ErrorCode::kNotFound, {}, "there is no such job", {}});
               self->answer(place, [&](json::Writer& json) {
                 write_job(json, (*found)->job, true);
                 return 200;
               });
             });
  return {};
}

Status Conversation::list(const Call& call) {
  Fields fields(call.target.query);
  ListRequest request;
  request.topic = call.names[0];
  if (const auto name = fields.text("state")) {
    const std::optional<JobState> state = parse_job_state(*name);
    if (!state) fields.note("state", "expected delayed, ready, reserved, done or dead");
    request.state = state.value_or(JobState::kReady);
  } else {
    fields.note("state", "is missing: delayed, ready, reserved, done or dead");
  }
  request.id_prefix = fields.text("prefix").value_or(std::string_view());
  request.outcome_contains = fields.text("error").value_or(std::string_view());
  request.cursor = fields.text("cursor").value_or(std::string_view());
  request.limit = fields.small_number("limit").value_or(100);
  request.with_bodies = fields.boolean("bodies").value_or(false);
  if (Status status = fields.finish(); !status.ok()) return status;
  queue_.list(now_, request,
              respond<JobPage>([with_bodies = request.with_bodies](json::Writer& json, const JobPage& page) {
                json.begin_object().key("jobs").begin_array();
                for (const Job& job : page.jobs) write_job(json, job, with_bodies);
                json.end_array().key("cursor").text(page.cursor).end_object();
                return 200;
              }));
  return {};
}

Status Conversation::topics(const Call& call) {
  Fields fields(call.target.query);
  const std::string_view cursor = fields.text("cursor").value_or(std::string_view());
  const uint32_t limit = fields.small_number("limit").value_or(100);
  if (Status status = fields.finish(); !status.ok()) return status;
  api::visible_topics(queue_, front_.access, caller_, now_, cursor, limit,
                      respond<TopicSummaries>([](json::Writer& json, const TopicSummaries& page) {
                        json.begin_object().key("topics").begin_array();
                        for (const TopicSummary& topic : page.topics) write_topic(json, topic);
                        json.end_array().key("cursor").text(page.cursor).end_object();
                        return 200;
                      }));
  return {};
}

Status Conversation::topic(const Call& call) {
  if (Status status = Fields::expect_none(call.target.query); !status.ok()) return status;
  queue_.stats(
      now_, call.names[0],
      respond<TopicStats>([name = std::string(call.names[0])](json::Writer& json, const TopicStats& stats) {
        json.begin_object().key("topic").text(name);
        write_counts(json, stats.counts);
        write_tallies(json, stats.tallies, stats.lateness, stats.waiters);
        if (!stats.delivery_problem.empty()) json.key("delivery_problem").text(stats.delivery_problem);
        json.key("settings").begin_object();
        write_settings(json, stats.settings);
        json.end_object().end_object();
        return 200;
      }));
  return {};
}

Status Conversation::totals(const Call& call) {
  if (Status status = Fields::expect_none(call.target.query); !status.ok()) return status;
  queue_.totals(now_, respond<TotalStats>([](json::Writer& json, const TotalStats& stats) {
                  write_totals(json, stats);
                  return 200;
                }));
  return {};
}

Status Conversation::forecast(const Call& call) {
  Fields fields(call.target.query);
  ForecastRequest request;
  request.topic = fields.text("topic").value_or(std::string_view());
  request.from = fields.moment("from").value_or(now_);
  request.to = fields.moment("to").value_or(request.from + std::chrono::hours{24});
  request.bins = fields.small_number("bins").value_or(24);
  if (Status status = fields.finish(); !status.ok()) return status;
  Status allowed = request.topic.empty() ? front_.access.check_all(caller_, only(Scope::kRead))
                                         : front_.access.check(caller_, only(Scope::kRead), request.topic);
  if (!allowed.ok()) return allowed;
  queue_.forecast(
      now_, request,
      respond<Forecast>([from = request.from, to = request.to](json::Writer& json, const Forecast& forecast) {
        json.begin_object().key("from").text(format_moment(from)).key("to").text(format_moment(to));
        json.key("resolution_ms").number(static_cast<uint64_t>(forecast.resolution.count()));
        json.key("bins").begin_array();
        for (const uint64_t jobs : forecast.bins) json.number(jobs);
        json.end_array().end_object();
        return 200;
      }));
  return {};
}

int Conversation::write_well(json::Writer& json) const {
  json.begin_object().key("status").text("ok").key("version").text(host_.version).end_object();
  return 200;
}

/// Answered by the queue: a server whose queue does not turn is not healthy. One whose jobs cannot be reached
/// is: another start would not bring them back.
Status Conversation::health(const Call& call) {
  if (Status status = Fields::expect_none(call.target.query); !status.ok()) return status;
  // The engine is not asked: whoever restarts what is not alive would restart a server whose Redis is away.
  reply([this](json::Writer& json) { return write_well(json); });
  return {};
}

Status Conversation::readiness(const Call& call) {
  if (Status status = Fields::expect_none(call.target.query); !status.ok()) return status;
  queue_.ready(now_, respond<void>([this](json::Writer& json) { return write_well(json); }));
  return {};
}

Status Conversation::openapi(const Call& call) {
  if (Status status = Fields::expect_none(call.target.query); !status.ok()) return status;
  send(reserve(), {200, "application/yaml", {}, std::string(embedded::openapi_yaml())});
  return {};
}

/// Two questions to the queue, whatever it holds: the totals, and one page of topics. Where it cannot be
/// asked, the rest is told all the same: that is when it is looked at.
Status Conversation::metrics(const Call& call) {
  if (Status status = Fields::expect_none(call.target.query); !status.ok()) return status;
  queue_.totals(now_, [self = self(), place = reserve(), now = now_](const Result<TotalStats>& totals) {
    if (!totals.ok()) return self->send_metrics(place, now, nullptr, nullptr);
    self->queue_.topics(now, {}, std::max(1U, self->host_.metrics_topics),
                        [self, place, now, totals = *totals](Result<TopicSummaries> topics) {
                          if (topics.ok() && self->host_.metrics_topics == 0) merge_all(*topics);
                          self->send_metrics(place, now, topics.ok() ? &totals : nullptr,
                                             topics.ok() ? &*topics : nullptr);
                        });
  });
  return {};
}

void Conversation::send_metrics(Place place, Moment now, const TotalStats* totals,
                                const TopicSummaries* topics) {
  Metrics metrics{host_.version, now, totals, topics, front_.http, front_.resp, host_.process()};
  if (host_.webhooks) metrics.webhooks = host_.webhooks();
  metrics.redis = host_.redis();
  metrics.redis_delivery = host_.redis_delivery();
  send(place, {200, "text/plain; version=0.0.4; charset=utf-8", {}, metrics_text(metrics)});
}

}  // namespace delayq::http
