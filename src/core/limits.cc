#include "core/limits.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "core/duration.h"
#include "core/moment.h"
#include "core/text.h"

namespace delayq {

namespace {

/// By byte; the bytes of UTF-8 sequences (from 0x80) are never in it.
using CharacterTable = std::array<bool, 256>;

constexpr CharacterTable make_topic_table() {
  CharacterTable allowed{};
  for (char c = 'a'; c <= 'z'; ++c) allowed[static_cast<size_t>(c)] = true;
  for (char c = 'A'; c <= 'Z'; ++c) allowed[static_cast<size_t>(c)] = true;
  for (char c = '0'; c <= '9'; ++c) allowed[static_cast<size_t>(c)] = true;
  for (char c : {'_', '.', ':', '-'}) allowed[static_cast<size_t>(c)] = true;
  return allowed;
}

constexpr CharacterTable make_printable_table(std::string_view also) {
  CharacterTable allowed{};
  for (size_t c = 0x20; c < 0x7f; ++c) allowed[c] = true;
  for (char c : also) allowed[static_cast<size_t>(c)] = true;
  return allowed;
}

constexpr CharacterTable kTopicAscii = make_topic_table();
constexpr CharacterTable kIdAscii = make_printable_table("");
constexpr CharacterTable kReasonAscii = make_printable_table("\t\n");

bool in_topic(char32_t c) { return !is_control(c) && !is_space(c) && !is_private_or_noncharacter(c); }
bool in_id(char32_t c) { return !is_control(c); }

/// Whether every character is allowed: ASCII by the table, the others by the predicate. Names and ids are
/// nearly always ASCII and are checked on every push, so the plain bytes do not go through the decoder.
template <class Predicate>
bool all_allowed(std::string_view text, const CharacterTable& ascii, Predicate&& other) {
  const auto in_table = [&ascii](char c) { return ascii[static_cast<unsigned char>(c)]; };
  while (true) {
    const auto stop = std::find_if_not(text.begin(), text.end(), in_table);
    text.remove_prefix(static_cast<size_t>(stop - text.begin()));
    if (text.empty()) return true;
    const std::optional<char32_t> code_point = take_code_point(text);
    if (!code_point || *code_point < 0x80 || !other(*code_point)) return false;
  }
}

Status check_length(std::string_view field, std::string_view text, size_t min, size_t max) {
  if (text.size() >= min && text.size() <= max) return {};
  if (text.empty())
    return invalid(field, fmt::format("{} is empty: it needs {} to {} bytes", field, min, max));
  return invalid(
      field, fmt::format("{} {} has {} bytes: at most {} are allowed", field, quote(text), text.size(), max));
}

Status check_name(std::string_view field, std::string_view text, size_t max) {
  if (Status status = check_length(field, text, 1, max); !status) return status;
  if (all_allowed(text, kIdAscii, in_id)) return {};
  return invalid(field, fmt::format("{} {} must be UTF-8 without control characters", field, quote(text)));
}

Status check_range(std::string_view field, Millis value, Millis min, Millis max) {
  if (value >= min && value <= max) return {};
  return invalid(field, fmt::format("{} {} is out of range: {} to {} is allowed", field,
                                    format_duration(value), format_duration(min), format_duration(max)));
}

}  // namespace

Status check_topic(std::string_view topic) {
  if (Status status = check_length("topic", topic, 1, Limits::kTopicBytes); !status) return status;
  if (all_allowed(topic, kTopicAscii, in_topic)) return {};
  return invalid("topic",
                 fmt::format("topic {} has a character that is not allowed: use letters, digits and _ . : -",
                             quote(topic)));
}

Status check_id(std::string_view id) { return check_name("id", id, Limits::kIdBytes); }

Status check_group(std::string_view group) { return check_name("group", group, Limits::kGroupBytes); }

Status check_backup_name(std::string_view name) {
  if (Status status = check_length("name", name, 1, Limits::kBackupNameBytes); !status) return status;
  const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
  if (is_plain && name.front() != '.' && !name.ends_with(kPartialEnding)) return {};
  return invalid(
      "name", fmt::format("name {} is not a plain name: use letters, digits and _ . -, not starting with a "
                          "dot and not ending with {}",
                          quote(name), kPartialEnding));
}

Status check_reason(std::string_view reason) {
  if (Status status = check_length("reason", reason, 0, Limits::kReasonBytes); !status) return status;
  if (all_allowed(reason, kReasonAscii, in_id)) return {};
  return invalid("reason", "reason must be UTF-8 without control characters other than tab and newline");
}

Status check_body(size_t size, size_t max) {
  if (size <= max) return {};
  return about_field(
      "body",
      {ErrorCode::kTooLarge, {}, fmt::format("body has {} bytes: at most {} are allowed", size, max)});
}

Status check_priority(uint64_t priority) {
  if (priority <= Limits::kMaxPriority) return {};
  return invalid("priority", fmt::format("priority {} is out of range: 0 (first) to {} is allowed", priority,
                                         Limits::kMaxPriority));
}

Status check_attempts(uint64_t attempts) {
  if (attempts <= Limits::kMaxAttempts) return {};
  return invalid("attempts", fmt::format("attempts {} is out of range: 1 to {} is allowed, or 0 for no limit",
                                         attempts, Limits::kMaxAttempts));
}

Status check_delay(Millis delay) { return check_range("delay", delay, Millis::zero(), Limits::kMaxDelay); }

Status check_due(Moment now, Moment due) {
  const Moment last = saturating_add(now, Limits::kMaxDelay);
  if (due <= last) return {};
  return invalid("at",
                 fmt::format("at {} is too far away: at most {} from now, until {}, is allowed",
                             format_moment(due), format_duration(Limits::kMaxDelay), format_moment(last)));
}

Status check_lease(Millis lease) { return check_range("lease", lease, Limits::kMinLease, Limits::kMaxLease); }

Status check_wait(Millis wait) { return check_range("wait", wait, Millis::zero(), Limits::kMaxWait); }

Status check_count(std::string_view field, uint64_t count, uint64_t max) {
  if (count >= 1 && count <= max) return {};
  return invalid(field, fmt::format("{} {} is out of range: 1 to {} is allowed", field, count, max));
}

}  // namespace delayq
