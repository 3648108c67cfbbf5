// Recurring jobs.
#include <array>
#include <utility>

#include <delayq/client.h>

#include "sdk/cpp/src/client_core.h"

namespace delayq {
inline namespace v1 {

namespace {

constexpr std::array<std::string_view, 3> kOverlap{"allow", "skip", "replace"};
constexpr std::array<std::string_view, 3> kMissed{"one", "skip", "all"};

template <class Enum>
std::string_view word_of(const std::array<std::string_view, 3>& words, Enum value, std::string_view field) {
  const auto index = static_cast<std::size_t>(value);
  if (index >= words.size()) throw Error(ErrorCode::invalid, std::string(field) + ": no such value");
  return words[index];
}

std::optional<Time> moment_in(const sdk::Value& map, std::string_view key) {
  const std::int64_t ms = map.number_of(key);
  return ms == 0 ? std::nullopt : std::optional(sdk::moment_of(ms));
}

template <class Number>
std::optional<Number> number_in(const sdk::Value& map, std::string_view key) {
  const sdk::Value* value = map.find(key);
  return value == nullptr ? std::nullopt : std::optional(static_cast<Number>(value->integer));
}

Schedule schedule_of(const sdk::Value& map) {
  Schedule schedule;
  schedule.name = map.text_of("name");
  schedule.state = map.text_of("state");
  schedule.topic = map.text_of("topic");
  schedule.payload = map.text_of("body");
  schedule.every = sdk::parse_duration(map.text_of("every"));
  schedule.cron = map.text_of("cron");
  schedule.zone = map.text_of("zone");
  schedule.start = moment_in(map, "start_ms");
  schedule.end = moment_in(map, "end_ms");
  schedule.runs = number_in<std::uint64_t>(map, "runs");
  schedule.jitter = sdk::parse_duration(map.text_of("jitter")).value_or(Duration{});
  schedule.overlap = map.text_of("overlap");
  schedule.missed = map.text_of("missed");
  schedule.next_at = moment_in(map, "next_ms");
  schedule.next_local = map.text_of("next_local");
  schedule.made = static_cast<std::uint64_t>(map.number_of("occurrences_made"));
  schedule.skipped = static_cast<std::uint64_t>(map.number_of("occurrences_skipped"));
  schedule.missed_count = static_cast<std::uint64_t>(map.number_of("occurrences_missed"));
  schedule.result = map.text_of("result");
  schedule.priority = number_in<std::uint32_t>(map, "priority");
  schedule.retry = number_in<std::uint32_t>(map, "attempts");
  schedule.backoff = map.text_of("backoff");
  schedule.timeout = sdk::parse_duration(map.text_of("lease"));
  schedule.group = map.text_of("group");
  schedule.callback = map.text_of("callback");
  schedule.headers = sdk::headers_of(map.find("headers"));
  return schedule;
}

/// The words behind the rule of SCHEDULE SET.
void append_definition(sdk::Words& words, const ClientCore& core, std::string_view topic,
                       std::string_view payload, const ScheduleOptions& options) {
  sdk::check_length("topic", topic);
  if (payload.size() > core.max_payload()) throw Error(ErrorCode::too_large, "body: too many bytes");
  words << "TOPIC" << topic << "BODY" << payload;
  if (options.start) (words << "START").moment(*options.start);
  if (options.end) (words << "END").moment(*options.end);
  if (options.runs) (words << "RUNS").number(*options.runs);
  if (options.jitter != Duration::zero()) (words << "JITTER").millis(options.jitter);
  words << "OVERLAP" << word_of(kOverlap, options.overlap, "overlap");
  words << "MISSED" << word_of(kMissed, options.missed, "missed");
  append_options(words, core, options.job);
}

void append_name(sdk::Words& words, std::string_view verb, std::string_view name) {
  sdk::check_length("name", name);
  words << "SCHEDULE" << verb << name;
}

sdk::Value ask_about(ClientCore& core, std::string_view verb, std::string_view name, bool is_safe_to_repeat) {
  sdk::Words words;
  append_name(words, verb, name);
  return core.ask(words, is_safe_to_repeat, sdk::Value::Type::kMap, verb == "GET");
}

std::vector<Occurrence> occurrences_of(const sdk::Value& list) {
  std::vector<Occurrence> occurrences;
  for (const sdk::Value& each : list.items) {
    if (each.items.size() < 2) throw Error(ErrorCode::internal, "an occurrence has no time");
    occurrences.push_back({sdk::moment_of(each.items[0].integer), each.items[1].text});
  }
  return occurrences;
}

}  // namespace

Schedule Client::every(std::string_view name, Duration interval, std::string_view topic,
                       std::string_view payload, const ScheduleOptions& options) {
  if (!options.zone.empty()) throw Error(ErrorCode::invalid, "zone: only a cron rule has one");
  sdk::Words words;
  append_name(words, "SET", name);
  (words << "EVERY").millis(interval);
  append_definition(words, *core_, topic, payload, options);
  return schedule_of(core_->ask(words, true, sdk::Value::Type::kMap));
}

Schedule Client::cron(std::string_view name, std::string_view rule, std::string_view topic,
                      std::string_view payload, const ScheduleOptions& options) {
  sdk::check_length("cron", rule);
  sdk::check_length("zone", options.zone);
  sdk::Words words;
  append_name(words, "SET", name);
  words << "CRON" << rule;
  if (!options.zone.empty()) words << "ZONE" << options.zone;
  append_definition(words, *core_, topic, payload, options);
  return schedule_of(core_->ask(words, true, sdk::Value::Type::kMap));
}

std::optional<Schedule> Client::get_schedule(std::string_view name) {
  const sdk::Value value = ask_about(*core_, "GET", name, true);
  if (value.is_null()) return std::nullopt;
  return schedule_of(value);
}

void Client::remove_schedule(std::string_view name) {
  sdk::Words words;
  append_name(words, "DEL", name);
  core_->ask(words, false, sdk::Value::Type::kText);
}

Schedule Client::pause_schedule(std::string_view name) {
  return schedule_of(ask_about(*core_, "PAUSE", name, true));
}

Schedule Client::resume_schedule(std::string_view name) {
  return schedule_of(ask_about(*core_, "RESUME", name, true));
}

ScheduleRun Client::run_schedule(std::string_view name) {
  const sdk::Value value = ask_about(*core_, "RUN", name, false);
  return {std::string(value.text_of("topic")), std::string(value.text_of("id")),
          std::string(value.text_of("state")), sdk::moment_of(value.number_of("due_ms"))};
}

std::vector<Occurrence> Client::next(std::string_view name, std::uint32_t count) {
  sdk::check_length("name", name);
  sdk::Words words;
  words << "SCHEDULE"
        << "NEXT"
        << "NAME" << name << "COUNT";
  words.number(count);
  return occurrences_of(core_->ask(words, true, sdk::Value::Type::kList));
}

std::vector<Occurrence> Client::next(const Rule& rule, std::uint32_t count, std::optional<Time> from) {
  if (rule.cron.empty() != rule.every.has_value())
    throw Error(ErrorCode::invalid, "cron, every: give exactly one of them");
  sdk::check_length("cron", rule.cron);
  sdk::check_length("zone", rule.zone);
  sdk::Words words;
  words << "SCHEDULE"
        << "NEXT";
  if (rule.every) {
    (words << "EVERY").millis(*rule.every);
  } else {
    words << "CRON" << rule.cron;
    if (!rule.zone.empty()) words << "ZONE" << rule.zone;
  }
  if (from) (words << "FROM").moment(*from);
  (words << "COUNT").number(count);
  return occurrences_of(core_->ask(words, true, sdk::Value::Type::kList));
}

}  // namespace v1
}  // namespace delayq
