#include "api/kafka/record_job.h"

#include <charconv>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "core/duration.h"
#include "core/limits.h"
#include "core/moment.h"
#include "core/random.h"
#include "core/text.h"
#include "queue/job_headers.h"

namespace delayq::intake {

namespace {

/// The values of the headers that this folder knows; of several with one name the last one counts.
struct Said {
  std::optional<std::string_view> delay{};
  std::optional<std::string_view> at{};
  std::optional<std::string_view> topic{};
  std::optional<std::string_view> id{};
  std::optional<std::string_view> target{};
  std::optional<std::string_view> group{};
  std::optional<std::string_view> priority{};
  std::optional<std::string_view> attempts{};
  std::optional<std::string_view> retries{};

  /// Where the value of this header belongs; null for the headers of others.
  std::optional<std::string_view>* place_of(std::string_view name, const HeaderNames& names) {
    if (name == names.delay) return &delay;
    if (name == names.at) return &at;
    if (name == names.topic) return &topic;
    if (name == names.id) return &id;
    if (name == names.target) return &target;
    if (name == names.group) return &group;
    if (name == names.priority) return &priority;
    if (name == names.attempts) return &attempts;
    if (name == names.retries) return &retries;
    return nullptr;
  }
};

Error in_header(std::string_view name, const Error& error) {
  return invalid(name, fmt::format("header {}: {}", name, error.detail));
}

template <class Parse>
auto read(std::string_view name, std::string_view text, Parse parse) -> decltype(parse(text)) {
  auto parsed = parse(text);
  if (!parsed.ok()) return in_header(name, parsed.error());
  return parsed;
}

Result<uint32_t> whole_number(std::string_view text) {
  uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  if (text.empty() || problem != std::errc{} || stop != end) {
    return invalid(fmt::format("{} is not a whole number from 0 to {}", quote(text),
                               std::numeric_limits<uint32_t>::max()));
  }
  return number;
}

/// The delay after the record's timestamp becomes a moment, so that it is the same whenever it is read.
void set_delay(PushRequest& push, const kafka::InputRecord& record, const Rules& rules, Millis delay) {
  if (rules.delays_from_arrival || !record.timestamp) {
    push.delay = delay;
  } else {
    push.at = saturating_add(*record.timestamp, delay);
  }
}

std::string_view default_id(const kafka::InputRecord& record, Arena& texts) {
  constexpr size_t kNumbers = 32;  // two dashes and the digits of both numbers
  const std::span<char> room = texts.allocate(record.topic.size() + kNumbers);
  const auto end =
      fmt::format_to_n(room.data(), room.size(), "{}-{}-{}", record.topic, record.partition, record.offset);
  return {room.data(), end.size};
}

/// For the jitter: the same whenever the record is read.
uint64_t bits_of(const kafka::InputRecord& record) {
  return mix64(static_cast<uint64_t>(record.offset) + mix64(static_cast<uint64_t>(record.partition)));
}

/// Which time the job is due.
Status set_time(PushRequest& push, const kafka::InputRecord& record, const Rules& rules, const Said& said,
                uint32_t retries) {
  const HeaderNames& names = rules.headers;
  if (said.delay && said.at) {
    return invalid(names.delay,
                   fmt::format("headers {} and {}: give at most one of them", names.delay, names.at));
  }
  if (said.at) {
    const auto at = read(names.at, *said.at, parse_moment);
    if (!at.ok()) return at.error();
    push.at = *at;
    return {};
  }
  Millis delay = rules.delay;
  if (said.delay) {
    const auto parsed = read(names.delay, *said.delay, parse_duration);
    if (!parsed.ok()) return parsed.error();
    delay = *parsed;
  } else if (rules.retry) {
    const RetryPolicy policy{0, rules.retry->backoff};
    delay = next_delay(policy, retries + 1, bits_of(record)).value_or(Millis::zero());
  }
  if (const Status status = check_delay(delay); !status) return in_header(names.delay, status.error());
  set_delay(push, record, rules, delay);
  return {};
}

/// The numbers among the headers.
Status set_numbers(PushRequest& push, const Said& said, const HeaderNames& names) {
  if (said.priority) {
    const auto priority = read(names.priority, *said.priority, whole_number);
    if (!priority.ok()) return priority.error();
    push.priority = *priority;
  }
  if (said.attempts) {
    const auto attempts = read(names.attempts, *said.attempts, whole_number);
    if (!attempts.ok()) return attempts.error();
    if (const Status status = check_attempts(*attempts); !status)
      return in_header(names.attempts, status.error());
    push.options.attempts = *attempts;
  }
  return {};
}

/// How often the record came back before; an error when it may not come back again.
Result<uint32_t> retries_of(const Said& said, const Rules& rules) {
  if (!rules.retry || !said.retries) return 0U;
  const auto retries = read(rules.headers.retries, *said.retries, whole_number);
  if (!retries.ok()) return retries.error();
  if (*retries >= rules.retry->retries) {
    return invalid(rules.headers.retries,
                   fmt::format("the record has come back {} times after a failure: at most {} are allowed",
                               *retries, rules.retry->retries));
  }
  return *retries;
}

}  // namespace

Result<PushRequest> job_of(const kafka::InputRecord& record, const Rules& rules, Arena& texts) {
  Said said;
  JobHeaders carried;
  carried.is_record = true;
  for (const kafka::InputHeader& header : record.headers) {
    if (auto* const place = said.place_of(header.name, rules.headers)) {
      *place = header.value.value_or(std::string_view());
    } else if (rules.carries) {
      carried.headers.push_back({header.name, header.value});
    }
  }
  PushRequest push;
  push.topic = said.topic ? *said.topic : rules.topic.empty() ? record.topic : std::string_view(rules.topic);
  push.id = said.id ? *said.id : default_id(record, texts);
  push.on_conflict = said.id ? rules.on_conflict : OnConflict::kKeep;
  push.group = said.group;
  push.body = record.value.value_or(std::string_view());
  const Result<uint32_t> retries = retries_of(said, rules);
  if (!retries.ok()) return retries.error();
  if (Status status = set_time(push, record, rules, said, *retries); !status) return status.error();
  if (Status status = set_numbers(push, said, rules.headers); !status) return status.error();
  if (said.target) {
    if (const Status status = check_kafka_topic(*said.target); !status)
      return in_header(rules.headers.target, status.error());
    push.options.kafka_topic = *said.target;
  }
  if (!rules.carries && !rules.retry) return push;
  if (rules.carries) {
    carried.key = record.key;
    carried.is_tombstone = !record.value;
  }
  if (rules.retry) {
    const std::string count = fmt::format("{}", *retries + 1);
    carried.headers.push_back({rules.headers.retries, texts.copy(count)});
  }
  std::string encoded;
  encode_job_headers(carried, encoded);
  if (const Status status = check_job_headers(encoded); !status) return status.error();
  push.options.headers = texts.copy(encoded);
  return push;
}

}  // namespace delayq::intake
