// The calls about topics: their figures, their settings, and what is done to all their jobs.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "api/http/conversation.h"
#include "api/http/streams.h"
#include "api/http/v1.h"
#include "api/verbs.h"
#include "core/duration.h"
#include "core/limits.h"
#include "core/moment.h"
#include "queue/delivery.h"

namespace delayq::http::v1_calls {

namespace {

int write_count(json::Writer& json, uint64_t count) {
  json.begin_object().key("jobs").number(count).end_object();
  return 200;
}

int write_done(json::Writer& json) {
  json.begin_object().key("result").text("ok").end_object();
  return 200;
}

}  // namespace

// ---- figures

Status topics(const Call& call) {
  Fields fields(call.target.query);
  const std::string_view cursor = fields.text("cursor").value_or(std::string_view());
  const uint32_t limit = fields.small_number("limit").value_or(100);
  if (Status status = fields.finish(); !status.ok()) return status;
  api::visible_topics(
      call.queue(), call.access(), call.caller(), call.now(), cursor, limit,
      call.accept().respond<TopicSummaries>([](json::Writer& json, const TopicSummaries& page) {
        json.begin_object().key("topics").begin_array();
        for (const TopicSummary& topic : page.topics) write_topic(json, topic);
        json.end_array().key("cursor").text(page.cursor).end_object();
        return 200;
      }));
  return {};
}

Status topic(const Call& call) {
  if (Status status = call.expect_no_query(); !status.ok()) return status;
  call.queue().stats(call.now(), call.names[0],
                     call.accept().respond<TopicStats>(
                         [name = std::string(call.names[0])](json::Writer& json, const TopicStats& stats) {
                           write_topic_stats(json, name, stats);
                           return 200;
                         }));
  return {};
}

Status totals(const Call& call) {
  if (Status status = call.expect_no_query(); !status.ok()) return status;
  call.queue().totals(call.now(),
                      call.accept().respond<TotalStats>([](json::Writer& json, const TotalStats& stats) {
                        write_totals(json, stats);
                        return 200;
                      }));
  return {};
}

Status forecast(const Call& call) {
  Fields fields(call.target.query);
  ForecastRequest request;
  request.topic = fields.text("topic").value_or(std::string_view());
  request.from = fields.moment("from").value_or(call.now());
  request.to = fields.moment("to").value_or(request.from + std::chrono::hours{24});
  request.bins = fields.small_number("bins").value_or(24);
  if (Status status = fields.finish(); !status.ok()) return status;
  Status allowed = request.topic.empty() ? call.access().check_all(call.caller(), only(Scope::kRead))
                                         : call.check(only(Scope::kRead), request.topic);
  if (!allowed.ok()) return allowed;
  call.queue().forecast(
      call.now(), request, kAllTopics,
      call.accept().respond<ForecastReport>(
          [from = request.from, to = request.to](json::Writer& json, const ForecastReport& forecast) {
            json.begin_object().key("from").text(format_moment(from)).key("to").text(format_moment(to));
            json.key("resolution_ms").number(static_cast<uint64_t>(forecast.jobs.resolution.count()));
            json.key("bins").begin_array();
            for (const uint64_t jobs : forecast.jobs.bins) json.number(jobs);
            json.end_array().key("scheduled").begin_array();
            for (const uint64_t occurrences : forecast.scheduled) json.number(occurrences);
            json.end_array().key("scheduled_complete").boolean(forecast.has_all_scheduled).end_object();
            return 200;
          }));
  return {};
}

namespace {

/// Takes the fields that choose news of single jobs; nullopt when figures are wanted. `after` is replaced by
/// the field of this name.
std::optional<NewsFilter> read_filter(Fields& fields, std::string_view topic, std::string_view& after) {
  const auto kinds = fields.text("news");
  const auto states = fields.text("state");
  const auto group = fields.text("group");
  const auto cursor = fields.text("after");
  if (!kinds) {
    for (const auto& [name, value] : {std::pair("state", states), {"group", group}, {"after", cursor}}) {
      if (value) fields.note(name, "is for news of single jobs: give news=all, too");
    }
    return std::nullopt;
  }
  after = cursor.value_or(after);
  NewsFilter filter;
  filter.topic = topic;
  filter.group = group.value_or(std::string_view());
  const auto read = [&fields](std::string_view name, const Result<uint32_t>& bits) {
    if (!bits.ok()) fields.note(name, bits.error().detail.substr(name.size() + 2));
    return bits.ok() ? *bits : 0;
  };
  filter.kinds = read("news", parse_news_kinds(*kinds));
  if (states) filter.states = read("state", parse_news_states(*states));
  return filter;
}

Status begin_news(const Call& call, NewsFilter filter, std::string_view after, Millis interval) {
  const api::Access& access = call.access();
  if (Status status = filter.topic.empty() ? Status() : call.check(only(Scope::kRead), filter.topic);
      !status.ok())
    return status;
  filter.patterns = access.patterns_of(call.caller());
  Result<std::shared_ptr<NewsListener>> listener = call.queue().listen(call.now(), std::move(filter), after);
  if (!listener.ok()) return listener.error();
  call.begin_stream(
      std::make_shared<NewsStream>(call.conversation, std::move(*listener), call.now(), interval));
  return {};
}

}  // namespace

Status events(const Call& call) {
  Fields fields(call.target.query);
  EventStream::Options options;
  options.topic = fields.text("topic").value_or(std::string_view());
  std::string_view after = call.request.last_event_id;
  std::optional<NewsFilter> filter = read_filter(fields, options.topic, after);
  if (filter) options.interval = Stream::kShortestInterval;
  options.interval = fields.duration("interval").value_or(options.interval);
  if (options.interval < Stream::kShortestInterval || options.interval > Stream::kLongestInterval) {
    fields.note("interval", fmt::format("expected {} to {}", format_duration(Stream::kShortestInterval),
                                        format_duration(Stream::kLongestInterval)));
  }
  if (Status status = fields.finish(); !status.ok()) return status;
  if (Status status = options.topic.empty() ? Status() : check_topic(options.topic); !status.ok())
    return status;
  if (!filter) {
    if (Status status = call.access().check_all(call.caller(), only(Scope::kRead)); !status.ok())
      return status;
  }
  if (call.request.method == "HEAD") {  // without a body there is nothing to wait for
    call.accept().send({200, "text/event-stream", {}, {}});
    return {};
  }
  if (call.host().events.is_full()) {
    return Error{ErrorCode::kOverloaded,
                 {},
                 fmt::format("too many event streams: at most {} may be open", Events::kMostStreams),
                 Stream::kSignOfLife};
  }
  if (filter) return begin_news(call, std::move(*filter), after, options.interval);
  call.begin_stream(
      std::make_shared<EventStream>(call.conversation, call.queue(), call.now(), std::move(options)));
  return {};
}

// ---- settings, and all jobs of a topic

Status change_settings(const Call& call) {
  Result<Fields> fields = call.json_fields();
  if (!fields.ok()) return fields.error();
  const SettingValues change = read_settings(*fields, topic_settings().rows());
  if (Status status = fields->finish(); !status.ok()) return status;
  if (Status status = check_rate_periods(change); !status.ok()) return status;
  const Settings own = topic_settings().own(change);
  // Notices are pushed to that topic in the name of whoever sets this.
  if (own.on_dead && !own.on_dead->empty() && !is_url(*own.on_dead)) {
    if (Status status = call.check(only(Scope::kPush), *own.on_dead); !status.ok())
      return about_field("on_dead", status.error());
  }
  Settings merged = overlay(call.queue().settings(call.names[0]), own);
  for (const std::string_view name : fields->nulls()) {
    if (Status status = unset_setting(merged, name); !status.ok()) return status;
  }
  call.queue().set_settings(call.now(), call.names[0], std::move(merged),
                            call.accept().respond<void>(write_done));
  return {};
}

Status pause(const Call& call) {
  if (Status status = call.expect_nothing(); !status.ok()) return status;
  call.queue().pause(call.now(), call.names[0], call.accept().respond<void>(write_done));
  return {};
}

Status resume(const Call& call) {
  if (Status status = call.expect_nothing(); !status.ok()) return status;
  call.queue().resume(call.now(), call.names[0], call.accept().respond<void>(write_done));
  return {};
}

Status forget(const Call& call) {
  if (Status status = call.expect_nothing(); !status.ok()) return status;
  call.queue().forget(
      call.now(), call.names[0], call.accept().respond<bool>([](json::Writer& json, bool existed) {
        json.begin_object().key("result").text("ok").key("existed").boolean(existed).end_object();
        return 200;
      }));
  return {};
}

Status purge(const Call& call) {
  if (Status status = call.expect_no_query(); !status.ok()) return status;
  call.queue().purge(call.now(), call.names[0], std::nullopt, call.accept().respond<uint64_t>(write_count));
  return {};
}

Status redrive(const Call& call) {
  Result<Fields> fields = call.json_fields();
  if (!fields.ok()) return fields.error();
  const auto ids = fields->texts("ids");
  const auto error = fields->text("error");
  if (ids && error) fields->note("error", "give ids or an error, not both");
  if (Status status = fields->finish(); !status.ok()) return status;
  if (ids) {
    call.queue().redrive(call.now(), call.names[0], *ids,
                         [responder = call.accept()](const Result<uint64_t>& count) {
                           if (!count.ok()) return responder.refuse(renamed(count.error(), "id", "ids"));
                           responder.send_json([&](json::Writer& json) { return write_count(json, *count); });
                         });
  } else if (error) {
    call.queue().redrive_by_error(call.now(), call.names[0], *error,
                                  call.accept().respond<uint64_t>(write_count));
  } else {
    call.queue().redrive_all(call.now(), call.names[0], call.accept().respond<uint64_t>(write_count));
  }
  return {};
}

}  // namespace delayq::http::v1_calls
