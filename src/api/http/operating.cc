// Whole topics: settings, pause, purge, redrive.
#include <algorithm>

#include <fmt/format.h>

#include "api/http/conversation.h"
#include "api/http/job_fields.h"
#include "api/http/problem.h"
#include "core/duration.h"

namespace delayq::http {

namespace {

/// {"time": "1h", "count": 1000}; what is left out stays as it is.
RetentionSetting read_retention(Fields& fields, std::string_view name) {
  RetentionSetting retention;
  std::optional<Fields> parts = fields.object(name);
  if (!parts) return retention;
  retention.time = parts->duration("time");
  retention.count = parts->small_number("count");
  fields.close(*parts);
  return retention;
}

/// {"count": 100, "per": "1s"}; a count of 0 is no limit.
std::optional<Rate> read_rate(Fields& fields) {
  std::optional<Fields> parts = fields.object("rate");
  if (!parts) return std::nullopt;
  const Rate rate{parts->small_number("count").value_or(0),
                  parts->duration("per").value_or(std::chrono::seconds{1})};
  fields.close(*parts);
  return rate;
}

std::optional<std::string> owned(std::optional<std::string_view> text) {
  return text ? std::optional(std::string(*text)) : std::nullopt;
}

/// One of several words, as `parse` knows them.
template <class Word>
std::optional<Word> read_word(Fields& fields, std::string_view name,
                              Result<Word> (*parse)(std::string_view)) {
  const auto text = fields.text(name);
  if (!text) return std::nullopt;
  const Result<Word> word = parse(*text);
  if (word.ok()) return *word;
  fields.note(name, word.error().detail);
  return std::nullopt;
}

void read_delivery(Fields& fields, Settings& change) {
  change.delivery = read_word(fields, "delivery", parse_delivery);
  change.callback = owned(fields.text("callback"));
  change.callback_method = owned(fields.text("callback_method"));
  change.callback_timeout = fields.duration("callback_timeout");
  change.callback_format = read_format(fields);
  if (const auto secrets = fields.texts("callback_secrets"))
    change.callback_secrets.emplace(secrets->begin(), secrets->end());
  change.redis_key = owned(fields.text("redis_key"));
  change.redis_content = read_word(fields, "redis_content", parse_redis_content);
  change.redis_maxlen = fields.number("redis_maxlen");
}

int write_count(json::Writer& json, uint64_t count) {
  json.begin_object().key("jobs").number(count).end_object();
  return 200;
}

int write_done(json::Writer& json) {
  json.begin_object().key("result").text("ok").end_object();
  return 200;
}

}  // namespace

void write_settings(json::Writer& json, const EffectiveSettings& settings) {
  const auto retention = [&json](std::string_view name, const Retention& value) {
    json.key(name).begin_object().key("time").text(format_duration(value.time));
    json.key("count").number(uint64_t{value.count}).end_object();
  };
  json.key("attempts").number(uint64_t{settings.retry.attempts});
  json.key("backoff")
      .text(format_backoff(settings.retry.backoff))
      .key("lease")
      .text(format_duration(settings.lease));
  retention("keep_done", settings.keep_done);
  retention("keep_dead", settings.keep_dead);
  json.key("rate").begin_object().key("count").number(uint64_t{settings.rate.count});
  json.key("per").text(format_duration(settings.rate.per)).end_object();
  json.key("concurrency").number(uint64_t{settings.concurrency}).key("paused").boolean(settings.paused);
  json.key("priority").number(uint64_t{settings.priority}).key("delivery").text(name_of(settings.delivery));
  json.key("callback").text(settings.callback).key("callback_method").text(settings.callback_method);
  json.key("callback_timeout").text(format_duration(settings.callback_timeout));
  json.key("callback_format").text(name_of(settings.callback_format));
  // How many there are, never which.
  json.key("callback_secret_count").number(uint64_t{settings.callback_secrets.size()});
  json.key("redis_key").text(settings.redis_key).key("redis_content").text(name_of(settings.redis_content));
  json.key("redis_maxlen").number(settings.redis_maxlen);
}

Status Conversation::change_settings(const Call& call) {
  Result<Fields> fields = Fields::of_json(call.request.body, call.target.query);
  if (!fields.ok()) return fields.error();
  Settings change;
  change.attempts = fields->small_number("attempts");
  change.backoff = fields->backoff("backoff");
  change.lease = fields->duration("lease");
  change.keep_done = read_retention(*fields, "keep_done");
  change.keep_dead = read_retention(*fields, "keep_dead");
  change.rate = read_rate(*fields);
  change.concurrency = fields->small_number("concurrency");
  change.paused = fields->boolean("paused");
  change.priority = fields->small_number("priority");
  read_delivery(*fields, change);
  if (Status status = fields->finish(); !status.ok()) return status;
  if (change.rate) {
    // The period must make sense even while no count makes use of it.
    const Rate used{std::max(change.rate->count, 1U), change.rate->per};
    if (Status status = check_settings({.rate = used}); !status.ok()) return status;
  }
  Settings merged = overlay(queue_.settings(call.names[0]), change);
  for (const std::string_view name : fields->nulls()) {
    if (Status status = unset_setting(merged, name); !status.ok()) return status;
  }
  queue_.set_settings(now_, call.names[0], std::move(merged), respond<void>(write_done));
  return {};
}

Status Conversation::pause(const Call& call) {
  if (Status status = Fields::expect_none(call.request.body, call.target.query); !status.ok()) return status;
  queue_.pause(now_, call.names[0], respond<void>(write_done));
  return {};
}

Status Conversation::resume(const Call& call) {
  if (Status status = Fields::expect_none(call.request.body, call.target.query); !status.ok()) return status;
  queue_.resume(now_, call.names[0], respond<void>(write_done));
  return {};
}

Status Conversation::forget(const Call& call) {
  if (Status status = Fields::expect_none(call.request.body, call.target.query); !status.ok()) return status;
  queue_.forget(now_, call.names[0], respond<void>(write_done));
  return {};
}

Status Conversation::purge(const Call& call) {
  if (Status status = Fields::expect_none(call.target.query); !status.ok()) return status;
  queue_.purge(now_, call.names[0], std::nullopt, respond<uint64_t>(write_count));
  return {};
}

Status Conversation::redrive(const Call& call) {
  Result<Fields> fields = Fields::of_json(call.request.body, call.target.query);
  if (!fields.ok()) return fields.error();
  const auto ids = fields->texts("ids");
  const auto error = fields->text("error");
  if (ids && error) fields->note("error", "give ids or an error, not both");
  if (Status status = fields->finish(); !status.ok()) return status;
  if (ids) {
    queue_.redrive(now_, call.names[0], *ids,
                   [self = self(), place = reserve()](const Result<uint64_t>& count) {
                     if (!count.ok()) return self->problem(place, renamed(count.error(), "id", "ids"));
                     self->answer(place, [&](json::Writer& json) { return write_count(json, *count); });
                   });
  } else if (error) {
    queue_.redrive_by_error(now_, call.names[0], *error, respond<uint64_t>(write_count));
  } else {
    queue_.redrive_all(now_, call.names[0], respond<uint64_t>(write_count));
  }
  return {};
}

}  // namespace delayq::http
