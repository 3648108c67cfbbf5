#include "tests/support/answer_text.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace delayq::support {

namespace {

constexpr std::array kPushNames{"created", "replaced", "kept", "conflict"};
constexpr std::array kAckNames{"acked", "stale"};
constexpr std::array kNackNames{"retried", "dead", "cancelled", "stale"};
constexpr std::array kRescheduleNames{"moved", "reserved", "done", "unknown"};
constexpr std::array kTurnNames{"turned", "skipped", "changed"};

}  // namespace

std::string to_text(const PushAnswer& answer) {
  return fmt::format("{} {} due={}", to_text(answer.outcome), name_of(answer.state), to_unix_ms(answer.due));
}

std::string to_text(const Taken& taken) {
  return (taken.lease.empty() ? "without a lease " : "leased ") + to_string(taken.job);
}

std::string to_text(const SeenJob& job) { return to_string(job); }
std::string to_text(PushOutcome outcome) { return kPushNames.at(static_cast<size_t>(outcome)); }
std::string to_text(AckOutcome outcome) { return kAckNames.at(static_cast<size_t>(outcome)); }
std::string to_text(NackOutcome outcome) { return kNackNames.at(static_cast<size_t>(outcome)); }
std::string to_text(CancelOutcome outcome) { return std::string{name_of(outcome)}; }
std::string to_text(RescheduleOutcome outcome) { return kRescheduleNames.at(static_cast<size_t>(outcome)); }
std::string to_text(bool yes) { return yes ? "yes" : "no"; }

std::string to_text(const GroupCancelAnswer& answer) {
  return fmt::format("{} cancelled, {} reserved", answer.cancelled, answer.reserved);
}

std::string to_text(const TopicCounts& counts) {
  return fmt::format("{} oldest={}", fmt::join(counts.by_state, "/"),
                     counts.oldest_ready ? std::to_string(to_unix_ms(*counts.oldest_ready)) : "none");
}

std::string to_text(const TopicRow& row) { return brief(row.topic) + " " + to_text(row.counts); }

std::string to_text(const TopicSettings& settings) {
  return brief(settings.topic) + "=" + brief(settings.settings);
}

std::string to_text(const std::string& text) { return brief(text); }

std::string to_text(const TurnAnswer& answer) {
  return fmt::format("{} {}{}", kTurnNames.at(static_cast<size_t>(answer.outcome)), to_text(answer.pushed),
                     answer.has_replaced ? " instead of the one before" : "");
}

std::string to_text(const StoredSchedule& schedule) {
  return fmt::format("{} {:x} next={} {} {}", brief(schedule.name), schedule.revision,
                     schedule.next == kNever ? -1 : to_unix_ms(schedule.next), brief(schedule.definition),
                     brief(schedule.progress));
}

}  // namespace delayq::support
