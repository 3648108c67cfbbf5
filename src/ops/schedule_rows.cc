#include "calendar/cron_rule.h"
#include "calendar/zone.h"
#include "core/limits.h"
#include "ops/config_table.h"
#include "queue/job_headers.h"

namespace delayq {

namespace {

using namespace std::chrono_literals;
using T = FieldTarget;

constexpr size_t kMethodBytes = 10;

Status check_cron(std::string_view text) {
  const Result<CronRule> rule = CronRule::parse(text);
  return rule.ok() ? Status{} : Status{rule.error()};
}

Status check_zone(std::string_view text) {
  const Result<Zone> zone = Zone::find(text);
  return zone.ok() ? Status{} : Status{zone.error()};
}

template <class Member>
auto set(Member Config::Schedule::*member) {
  return [member](T& t, auto value) { t.schedule->*member = std::move(value); };
}

template <class Word>
auto set_word(Word Config::Schedule::*member) {
  return [member](T& t, size_t value) { t.schedule->*member = static_cast<Word>(value); };
}

ConfigRow row(std::string key, Field field, std::string initial, std::string_view sample,
              std::string_view help) {
  return {kSchedulesSection, std::move(key), std::move(field), std::move(initial), sample, help};
}

void add_rule(std::vector<ConfigRow>& rows) {
  using S = Config::Schedule;
  rows.push_back(row("cron", TextField{1, Limits::kCronBytes, set(&S::cron), check_cron}, "", "\"0 2 * * *\"",
                     "When: minute, hour, day of the month, month, day of the week."));
  rows.push_back(row("every", DurationField{Limits::kMinEvery, Limits::kMaxEvery, set(&S::every)}, "",
                     "\"15m\"", "Instead of cron: the time from one occurrence to the next."));
  rows.push_back(row("zone", TextField{1, Limits::kZoneBytes, set(&S::zone), check_zone}, "\"UTC\"", "",
                     "The time zone of the cron rule, such as Asia/Shanghai."));
  rows.push_back(row("start", MomentField{set(&S::start)}, "", "\"2030-01-31T08:00:00Z\"",
                     "No occurrence is before it; every counts from it."));
  rows.push_back(
      row("end", MomentField{set(&S::end)}, "", "\"2031-01-31T08:00:00Z\"", "No occurrence is after it."));
  rows.push_back(row("runs", NumberField{1, Limits::kMaxRuns, set(&S::runs)}, "", "1000",
                     "How many jobs are made in all."));
  rows.push_back(row("jitter", DurationField{0s, Limits::kMaxJitter, set(&S::jitter)}, "\"0s\"", "",
                     "Each job is due up to this much after its occurrence."));
  rows.push_back(row("overlap", ChoiceField{kOverlapNames, {}, set_word(&S::overlap)}, "\"allow\"", "",
                     "What to do when the job before is not done: make the next all the same, skip it, or "
                     "let it replace a job that waits."));
  rows.push_back(row("missed", ChoiceField{kMissedNames, {}, set_word(&S::missed)}, "\"one\"", "",
                     "Which occurrences are made up for when no server ran or the schedule was paused: the "
                     "last one, none (skip), or all."));
}

void add_job(std::vector<ConfigRow>& rows) {
  using S = Config::Schedule;
  rows.push_back(row("topic", TextField{1, Limits::kTopicBytes, set(&S::topic), check_topic}, "",
                     "\"report\"", "The topic of the jobs; required."));
  rows.push_back(
      row("body", TextField{0, Limits::kMaxBodyBytes, set(&S::body)}, "\"\"", "",
          "The body of the jobs, as text; JSON is written as a text, too: '{\"kind\":\"daily\"}'."));
  rows.push_back(row("priority", NumberField{0, Limits::kMaxPriority, set(&S::priority)}, "", "1024",
                     "The priority of the jobs, 0 first; none means that of the topic."));
  rows.push_back(row("group", TextField{0, Limits::kGroupBytes, set(&S::group), check_group}, "\"\"", "",
                     "The group of the jobs; empty means none."));
  rows.push_back(row("attempts", NumberField{0, Limits::kMaxAttempts, set(&S::attempts)}, "", "3",
                     "Hand-overs before a job is dead, 0 for no limit; none means as the topic says."));
  rows.push_back(row("backoff", BackoffField{set(&S::backoff)}, "", "[\"10s\", \"1m\"]",
                     "How long to wait after each failure; none means as the topic says."));
  rows.push_back(row("lease", DurationField{Limits::kMinLease, Limits::kMaxLease, set(&S::lease)}, "",
                     "\"5m\"", "How long a consumer may hold a job; none means as the topic says."));
  rows.push_back(row("callback", TextField{0, Limits::kCallbackBytes, set(&S::callback), check_callback},
                     "\"\"", "", "A URL that is called with each job, instead of the topic's delivery."));
  rows.push_back(row("callback_method",
                     TextField{0, kMethodBytes, set(&S::callback_method), check_callback_method}, "\"\"", "",
                     "POST, PUT, PATCH or DELETE; empty means as the topic says."));
  rows.push_back(
      row("callback_format",
          ChoiceField{kCallbackFormatNames,
                      {},
                      [](T& t, size_t v) { t.schedule->callback_format = static_cast<CallbackFormat>(v); }},
          "", "\"webhook\"", "The format of the calls; none means as the topic says."));
  rows.push_back(
      row("headers",
          PairsField{HeaderLimits::kHeaders, "headers",
                     [](T& t) -> std::map<std::string, std::string>& { return t.schedule->headers; }},
          "{}", "", "The headers of the jobs: { tenant = \"acme\" }, or [schedules.NAME.headers]."));
}

}  // namespace

std::vector<ConfigRow> schedule_rows() {
  std::vector<ConfigRow> rows;
  add_rule(rows);
  add_job(rows);
  return rows;
}

ScheduleSpec Config::Schedule::spec(std::string_view name, Arena& texts) const {
  ScheduleSpec spec;
  spec.name = name;
  spec.every = every;
  spec.cron = cron;
  spec.zone = zone;
  spec.start = start;
  spec.end = end;
  spec.runs = runs;
  spec.jitter = jitter;
  spec.overlap = overlap;
  spec.missed = missed;
  spec.topic = topic;
  spec.body = body;
  spec.priority = priority;
  spec.group = group;
  spec.options.attempts = attempts;
  spec.options.backoff = backoff;
  spec.options.lease = lease;
  spec.options.callback = callback;
  spec.options.method = callback_method;
  spec.options.format = callback_format;
  std::vector<JobHeader> given;
  for (const auto& [header, value] : headers) given.push_back({header, value});
  std::string encoded;
  encode_job_headers(given, encoded);
  spec.options.headers = texts.copy(encoded);
  spec.from_configuration = true;
  return spec;
}

}  // namespace delayq
