#pragma once

#include <string>
#include <vector>

#include "engine/requests.h"
#include "engine/schedules.h"
#include "tests/support/seen_job.h"

/// Replies as text: equal replies of two engines give equal text, and a trace is readable. Data that may
/// differ between engines (lease tokens, cursors) is left out.
namespace delayq::support {

std::string to_text(const PushAnswer& answer);
std::string to_text(const Taken& taken);
std::string to_text(const SeenJob& job);
std::string to_text(PushOutcome outcome);
std::string to_text(AckOutcome outcome);
std::string to_text(NackOutcome outcome);
std::string to_text(CancelOutcome outcome);
std::string to_text(RescheduleOutcome outcome);
std::string to_text(bool yes);
std::string to_text(const GroupCancelAnswer& answer);
std::string to_text(const TopicCounts& counts);
std::string to_text(const TopicRow& row);
std::string to_text(const TopicSettings& settings);
std::string to_text(const TurnAnswer& answer);
std::string to_text(const StoredSchedule& schedule);
std::string to_text(const std::string& text);

template <class T>
std::string to_text(const std::vector<T>& items) {
  std::string text = "[";
  for (const auto& item : items) {
    if (text.size() > 1) text += ", ";
    text += to_text(static_cast<const T&>(item));
  }
  return text + "]";
}

}  // namespace delayq::support
