#include "queue/settings.h"

#include <algorithm>
#include <cassert>
#include <charconv>

#include <fmt/format.h>

#include "core/duration.h"
#include "core/limits.h"
#include "core/text.h"
#include "json/reader.h"
#include "queue/job_headers.h"
#include "queue/msgpack.h"
#include "queue/settings_table.h"

namespace delayq {

namespace {

constexpr uint32_t kMaxRateCount = 1'000'000'000;
constexpr Millis kMaxRatePeriod = std::chrono::days{1};

SettingsTable<Settings, EffectiveSettings> make_topic_settings() {
  SettingsTable<Settings, EffectiveSettings> table;
#define DELAYQ_SETTING(number_, type, name_, initial, ...) \
  table.add<&Settings::name_, &EffectiveSettings::name_>({.number = number_, .name = #name_, __VA_ARGS__});
#include "queue/topic_settings.def"
  return table;
}

// ---- checks: one function for each kind

std::string or_zero(std::string_view zero, std::string_view zero_means) {
  return zero_means.empty() ? std::string() : fmt::format(", or {} for {}", zero, zero_means);
}

Status check(std::string_view name, const NumberKind& kind, uint64_t value) {
  if (value <= kind.most) return {};
  return invalid(name,
                 fmt::format("{} {} is out of range: {} to {} is allowed{}", name, value,
                             kind.zero_means.empty() ? 0 : 1, kind.most, or_zero("0", kind.zero_means)));
}

Status check(std::string_view name, const DurationKind& kind, Millis value) {
  const bool is_zero = value == Millis::zero() && !kind.zero_means.empty();
  if (is_zero || (value >= kind.least && value <= kind.most)) return {};
  return invalid(name, fmt::format("{} {} is out of range: {} to {} is allowed{}", name,
                                   format_duration(value), format_duration(kind.least),
                                   format_duration(kind.most), or_zero("0s", kind.zero_means)));
}

Status check(std::string_view name, const TextKind& kind, const std::string& value) {
  if (value.empty()) return {};
  if (Status status = kind.check != nullptr ? kind.check(value) : Status{}; !status) return status;
  if (value.size() <= kind.most_bytes) return {};
  return invalid(name,
                 fmt::format("{} has {} bytes: at most {} are allowed", name, value.size(), kind.most_bytes));
}

Status check(std::string_view /*name*/, const BackoffKind& /*kind*/, const Backoff& value) {
  return check_backoff(value);
}

Status check(std::string_view name, const RateKind& /*kind*/, const Rate& value) {
  if (value.count == 0) return {};
  if (value.count > kMaxRateCount) {
    return invalid(fmt::format("{}.count", name),
                   fmt::format("{} {} is out of range: 1 to {} is allowed, or 0 for no limit", name,
                               value.count, kMaxRateCount));
  }
  if (value.per >= Millis{1} && value.per <= kMaxRatePeriod) return {};
  return invalid(fmt::format("{}.per", name),
                 fmt::format("{} per {} is out of range: 1ms to {} is allowed", name,
                             format_duration(value.per), format_duration(kMaxRatePeriod)));
}

Status check(std::string_view name, const RetentionKind& /*kind*/, const RetentionSetting& value) {
  const Millis time = value.time.value_or(Millis::zero());
  if (time >= Millis::zero() && time <= Limits::kMaxRetention) return {};
  return invalid(fmt::format("{}.time", name),
                 fmt::format("{} time {} is out of range: 0s to {} is allowed", name, format_duration(time),
                             format_duration(Limits::kMaxRetention)));
}

Status check(std::string_view /*name*/, const SecretsKind& kind, const std::vector<std::string>& value) {
  return kind.check(value);
}

Status check(std::string_view /*name*/, const FlagKind& /*kind*/, bool /*value*/) { return {}; }
Status check(std::string_view /*name*/, [[maybe_unused]] const WordKind& kind,
             [[maybe_unused]] uint64_t value) {
  assert(value < kind.words.names.size());
  return {};
}

// ---- the stored form: a map from numbers to values

void write(MsgpackWriter& out, const NumberKind& /*kind*/, uint64_t value) { out.uint(value); }
void write(MsgpackWriter& out, const DurationKind& /*kind*/, Millis value) { out.millis(value); }
void write(MsgpackWriter& out, const FlagKind& /*kind*/, bool value) { out.boolean(value); }
void write(MsgpackWriter& out, const TextKind& /*kind*/, const std::string& value) { out.text(value); }
void write(MsgpackWriter& out, const WordKind& kind, uint64_t value) { out.text(kind.words.names[value]); }
void write(MsgpackWriter& out, const BackoffKind& /*kind*/, const Backoff& value) { out.backoff(value); }
void write(MsgpackWriter& out, const RateKind& /*kind*/, const Rate& value) {
  out.array(2);
  out.uint(value.count);
  out.millis(value.per);
}
void write(MsgpackWriter& out, const RetentionKind& /*kind*/, const RetentionSetting& value) {
  out.array(2);
  out.millis(*value.time);
  out.uint(*value.count);
}
void write(MsgpackWriter& out, const SecretsKind& /*kind*/, const std::vector<std::string>& values) {
  out.array(static_cast<uint32_t>(values.size()));
  for (const std::string& value : values) out.text(value);
}

SettingValue read(MsgpackReader& in, const NumberKind& /*kind*/) { return in.uint(); }
SettingValue read(MsgpackReader& in, const DurationKind& /*kind*/) { return in.millis(); }
SettingValue read(MsgpackReader& in, const FlagKind& /*kind*/) { return in.boolean(); }
SettingValue read(MsgpackReader& in, const TextKind& /*kind*/) { return std::string{in.text()}; }
SettingValue read(MsgpackReader& in, const WordKind& kind) {
  const Result<size_t> found = kind.words.find(in.text());
  if (!found) in.reject();
  return uint64_t{found ? *found : 0};
}
SettingValue read(MsgpackReader& in, const BackoffKind& /*kind*/) { return in.backoff(); }
SettingValue read(MsgpackReader& in, const RateKind& /*kind*/) {
  if (in.array() != 2) in.reject();
  const uint32_t count = in.uint32();
  return Rate{count, in.millis()};
}
SettingValue read(MsgpackReader& in, const RetentionKind& /*kind*/) {
  if (in.array() != 2) in.reject();
  const Millis time = in.millis();
  return RetentionSetting(Retention{time, in.uint32()});
}
SettingValue read(MsgpackReader& in, const SecretsKind& /*kind*/) {
  std::vector<std::string> texts;
  const uint32_t count = in.array();
  for (uint32_t i = 0; i < count && in.ok(); ++i) texts.emplace_back(in.text());
  return texts;
}

/// Writes the entry of a retention of which only one part is set. Returns false for everything else.
bool write_part(MsgpackWriter& out, const Setting& row, const SettingValue& value) {
  const auto* const kind = std::get_if<RetentionKind>(&row.kind);
  if (kind == nullptr) return false;
  const auto& keep = std::get<RetentionSetting>(value);
  if (keep.time && keep.count) return false;
  out.uint(keep.time ? kind->time_number : kind->count_number);
  if (keep.time) out.millis(*keep.time);
  if (keep.count) out.uint(*keep.count);
  return true;
}

/// Reads the value of `number` if it is a part of a retention.
bool read_part(MsgpackReader& in, uint64_t number, const Setting& row, std::optional<SettingValue>& value) {
  const auto* const kind = std::get_if<RetentionKind>(&row.kind);
  if (kind == nullptr || (number != kind->time_number && number != kind->count_number)) return false;
  if (!value) value = RetentionSetting{};
  auto& keep = std::get<RetentionSetting>(*value);
  if (number == kind->time_number) keep.time = in.millis();
  if (number == kind->count_number) keep.count = in.uint32();
  return true;
}

void read_entry(MsgpackReader& in, SettingValues& settings) {
  const uint64_t number = in.uint();
  for (size_t i = 0; i < settings.rows.size(); ++i) {
    const Setting& row = settings.rows[i];
    if (read_part(in, number, row, settings.values[i])) return;
    if (row.number != number) continue;
    settings.values[i] = std::visit([&](const auto& kind) { return read(in, kind); }, row.kind);
    return;
  }
  in.skip();
}

Error corrupt(std::string detail) { return {ErrorCode::kCorrupt, "settings", std::move(detail)}; }

// ---- texts: one function for each kind

std::optional<uint64_t> whole_number(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc{} || stop != end || text.empty()) return std::nullopt;
  return number;
}

Result<SettingValue> parse(const NumberKind& kind, std::string_view text) {
  const std::optional<uint64_t> number = whole_number(text);
  if (!number) return invalid(fmt::format("expected a whole number, got {}", quote(text)));
  // More would not fit into the setting; all else is compared with its range later.
  if (*number > std::max(kind.most, kMax32Bits))
    return invalid(fmt::format("{} is above {}", *number, kind.most));
  return SettingValue(*number);
}

template <class T>
Result<SettingValue> any(const Result<T>& parsed) {
  if (!parsed.ok()) return parsed.error();
  return SettingValue(*parsed);
}

Result<SettingValue> parse(const DurationKind& /*kind*/, std::string_view text) {
  return any(parse_duration(text));
}
Result<SettingValue> parse(const FlagKind& /*kind*/, std::string_view text) {
  const std::string word = lowered(text);
  if (word == "true" || word == "yes" || word == "1") return SettingValue(true);
  if (word == "false" || word == "no" || word == "0") return SettingValue(false);
  return invalid(fmt::format("expected true or false, got {}", quote(text)));
}
Result<SettingValue> parse(const TextKind& /*kind*/, std::string_view text) {
  return SettingValue(std::string(text));
}
Result<SettingValue> parse(const WordKind& kind, std::string_view text) {
  const Result<size_t> place = kind.words.find(text);
  if (!place.ok()) return place.error();
  return SettingValue(uint64_t{*place});
}
Result<SettingValue> parse(const BackoffKind& /*kind*/, std::string_view text) {
  return any(parse_backoff(text));
}
Result<SettingValue> parse(const RateKind& /*kind*/, std::string_view text) { return any(parse_rate(text)); }

/// One text, or an array of them in JSON. Neither a secret nor a header line begins with a bracket.
Result<SettingValue> parse(const SecretsKind& kind, std::string_view text) {
  std::vector<std::string> all;
  if (!text.starts_with('[')) {
    if (!text.empty()) all.emplace_back(text);
    return SettingValue(std::move(all));
  }
  const Error wrong =
      invalid(fmt::format("expected one of the {} as it is, or an array of texts in JSON", kind.what));
  const Result<json::Slice> array = json::parse(text);
  if (!array.ok() || array->type != json::Type::kArray) return wrong;
  for (const json::Slice& item : json::items_of(*array)) {
    if (item.type != json::Type::kString) return wrong;
    Result<std::string> one = json::text_of(item);
    if (!one.ok()) return wrong;
    all.push_back(std::move(*one));
  }
  return SettingValue(std::move(all));
}

SettingWord word_of(const NumberKind& /*kind*/, uint64_t value) { return value; }
SettingWord word_of(const DurationKind& /*kind*/, Millis value) { return format_duration(value); }
SettingWord word_of(const FlagKind& /*kind*/, bool value) { return uint64_t{value}; }
SettingWord word_of(const TextKind& /*kind*/, const std::string& value) { return value; }
SettingWord word_of(const WordKind& kind, uint64_t value) { return std::string(kind.words.names[value]); }
SettingWord word_of(const BackoffKind& /*kind*/, const Backoff& value) { return format_backoff(value); }
SettingWord word_of(const RateKind& /*kind*/, const Rate& value) { return format_rate(value); }
/// How many there are, never which.
SettingWord word_of(const SecretsKind& /*kind*/, const std::vector<std::string>& value) {
  return uint64_t{value.size()};
}

// The parts of a retention.
constexpr std::string_view kTimePart = ".time";
constexpr std::string_view kCountPart = ".count";

Status set_part(SettingValues& settings, size_t place, std::string_view part, std::string_view text) {
  std::optional<SettingValue>& value = settings.values[place];
  RetentionSetting keep = value ? std::get<RetentionSetting>(*value) : RetentionSetting{};
  if (part == kTimePart) {
    const Result<Millis> time = parse_duration(text);
    if (!time.ok()) return time.error();
    keep.time = *time;
  } else {
    const std::optional<uint64_t> count = whole_number(text);
    if (!count || *count > kMax32Bits)
      return invalid(fmt::format("expected a whole number up to {}, got {}", kMax32Bits, quote(text)));
    keep.count = static_cast<uint32_t>(*count);
  }
  value = keep;
  return {};
}

}  // namespace

Result<Rate> parse_rate(std::string_view text) {
  const size_t slash = text.find('/');
  const std::optional<uint64_t> count = whole_number(text.substr(0, slash));
  const bool is_whole = count && (*count == 0 || slash != std::string_view::npos);
  if (!is_whole || *count > kMaxRateCount) {
    return invalid(
        fmt::format(R"({} is not a rate: use "100/1s", at most {} in 1ms to {}, or "0" for no limit)",
                    quote(text), kMaxRateCount, format_duration(kMaxRatePeriod)));
  }
  if (slash == std::string_view::npos) return Rate{};
  const Result<Millis> per = parse_duration(text.substr(slash + 1));
  if (!per.ok()) return per.error();
  return *count == 0 ? Rate{} : Rate{.count = static_cast<uint32_t>(*count), .per = *per};
}

std::string format_rate(const Rate& rate) {
  return rate.count == 0 ? "0" : fmt::format("{}/{}", rate.count, format_duration(rate.per));
}

Status set_from_text(SettingValues& settings, std::string_view name, std::string_view text) {
  const size_t dot = std::min(name.find('.'), name.size());
  const std::string_view part = name.substr(dot);
  const std::optional<size_t> place = find_setting(settings.rows, name.substr(0, dot));
  if (!place) return unknown_setting(settings.rows, name.substr(0, dot));
  const Setting& row = settings.rows[*place];
  const bool has_parts = std::holds_alternative<RetentionKind>(row.kind);
  if (has_parts != (part == kTimePart || part == kCountPart)) {
    return invalid(name, has_parts ? fmt::format("{0}: say {0}.time or {0}.count", row.name)
                                   : fmt::format("{}: {} has no parts", name, row.name));
  }
  Status status;
  if (has_parts) {
    status = set_part(settings, *place, part, text);
  } else {
    const Result<SettingValue> value = std::visit(
        [text](const auto& kind) -> Result<SettingValue> {
          if constexpr (std::is_same_v<std::decay_t<decltype(kind)>, RetentionKind>) {
            return invalid("it has parts");
          } else {
            return parse(kind, text);
          }
        },
        row.kind);
    if (value.ok()) {
      settings.values[*place] = *value;
    } else {
      status = value.error();
    }
  }
  if (status.ok()) return {};
  return invalid(name, fmt::format("{}: {}", name, status.error().detail));
}

std::vector<NamedSetting> setting_words(const SettingValues& settings) {
  std::vector<NamedSetting> words;
  for (size_t i = 0; i < settings.rows.size(); ++i) {
    if (!settings.values[i]) continue;
    const Setting& row = settings.rows[i];
    visit_setting(row, *settings.values[i], [&](const auto& kind, const auto& value) {
      using Kind = std::decay_t<decltype(kind)>;
      if constexpr (std::is_same_v<Kind, RetentionKind>) {
        if (value.time)
          words.push_back({fmt::format("{}{}", row.name, kTimePart), row.name, format_duration(*value.time)});
        if (value.count)
          words.push_back({fmt::format("{}{}", row.name, kCountPart), row.name, uint64_t{*value.count}});
      } else {
        const bool is_secret = std::is_same_v<Kind, SecretsKind>;
        words.push_back(
            {is_secret ? count_name(row) : std::string(row.name), row.name, word_of(kind, value)});
      }
    });
  }
  return words;
}

std::string count_name(const Setting& secrets) {
  return fmt::format("{}_count", secrets.name.substr(0, secrets.name.size() - 1));
}

const SettingsTable<Settings, EffectiveSettings>& topic_settings() {
  static const SettingsTable<Settings, EffectiveSettings> kTable = make_topic_settings();
  return kTable;
}

std::optional<size_t> find_setting(std::span<const Setting> rows, std::string_view name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Setting& row) { return row.name == name; });
  if (found == rows.end()) return std::nullopt;
  return static_cast<size_t>(found - rows.begin());
}

Status check_setting(const Setting& row, const SettingValue& value) {
  return visit_setting(row, value,
                       [&](const auto& kind, const auto& plain) { return check(row.name, kind, plain); });
}

Status check_values(const SettingValues& settings) {
  for (size_t i = 0; i < settings.rows.size(); ++i) {
    if (!settings.values[i]) continue;
    if (Status status = check_setting(settings.rows[i], *settings.values[i]); !status) return status;
  }
  return {};
}

std::string encode_values(const SettingValues& settings) {
  uint32_t count = 0;  // a map begins with the number of its entries
  std::string entries;
  MsgpackWriter out{entries};
  for (size_t i = 0; i < settings.rows.size(); ++i) {
    const Setting& row = settings.rows[i];
    const std::optional<SettingValue>& value = settings.values[i];
    if (!value) continue;
    ++count;
    if (write_part(out, row, *value)) continue;
    out.uint(row.number);
    visit_setting(row, *value, [&](const auto& kind, const auto& plain) { write(out, kind, plain); });
  }
  if (count == 0) return {};
  std::string map;
  MsgpackWriter{map}.map(count);
  return map + entries;
}

Result<SettingValues> decode_values(std::span<const Setting> rows, std::string_view bytes) {
  SettingValues settings{rows};
  if (bytes.empty()) return settings;
  MsgpackReader in{bytes};
  const uint32_t pairs = in.map();
  for (uint32_t i = 0; i < pairs && in.ok(); ++i) read_entry(in, settings);
  if (!in.complete()) return corrupt("stored settings cannot be read");  // not shown: they have secrets
  if (const Status status = check_values(settings); !status)
    return corrupt("stored settings are out of range: " + status.error().detail);
  return settings;
}

Error unknown_setting(std::span<const Setting> rows, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Setting& row : rows) names.push_back(row.name);
  const std::string_view meant = nearest(name, names);
  return invalid(fmt::format("{} is not a setting of a topic{}", quote(name),
                             meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
}

Status check_settings(const Settings& settings) { return topic_settings().check(settings); }

void apply_settings(const Settings& settings, EffectiveSettings& onto) {
  topic_settings().apply(settings, onto);
}

Settings overlay(Settings below, const Settings& above) {
  return topic_settings().overlay(std::move(below), above);
}

Status unset_setting(Settings& settings, std::string_view name) {
  return topic_settings().unset(settings, name);
}

std::string encode_settings(const Settings& settings) { return topic_settings().encode(settings); }

Result<Settings> decode_settings(std::string_view bytes) { return topic_settings().decode(bytes); }

bool keeps_less(const EffectiveSettings& now, const EffectiveSettings& before) {
  const auto is_less = [](const Retention& a, const Retention& b) {
    return a.most() < b.most() || a.time < b.time;
  };
  return is_less(now.keep_done, before.keep_done) || is_less(now.keep_dead, before.keep_dead);
}

Keep keep_from(Moment now, const Retention& retention) {
  if (retention.most() == 0) return {};
  return {saturating_add(now, retention.time), retention.count};
}

}  // namespace delayq
