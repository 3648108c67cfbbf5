#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"

/// What differs between an engine's answer and the model's: empty when nothing does. Leases are not compared
/// here.
namespace delayq::simulation {

std::string difference(const std::vector<PushAnswer>& real, const std::vector<PushAnswer>& expected);
std::string difference(const TakeAnswer& real, const TakeAnswer& expected);
std::string difference(const std::vector<AckOutcome>& real, const std::vector<AckOutcome>& expected);
std::string difference(const std::vector<NackOutcome>& real, const std::vector<NackOutcome>& expected);
std::string difference(const std::vector<ExtendAnswer>& real, const std::vector<ExtendAnswer>& expected);
std::string difference(const std::vector<LeaseInfo>& real, const std::vector<LeaseInfo>& expected);
std::string difference(const std::vector<CancelOutcome>& real, const std::vector<CancelOutcome>& expected);
std::string difference(const GroupCancelAnswer& real, const GroupCancelAnswer& expected);
std::string difference(const std::vector<RescheduleOutcome>& real,
                       const std::vector<RescheduleOutcome>& expected);
std::string difference(uint64_t real, uint64_t expected);
std::string difference(const std::optional<FoundJob>& real, const std::optional<FoundJob>& expected);
std::string difference(const std::vector<std::string>& real, const std::vector<std::string>& expected);
/// `expected` is the whole list, without a cursor; `real` may be any page of it.
std::string difference(const JobPage& real, const JobPage& expected);
std::string difference(const TopicCounts& real, const TopicCounts& expected);
std::string difference(const TopicPage& real, const TopicPage& expected);
std::string difference(const std::vector<TopicSettings>& real, const std::vector<TopicSettings>& expected);
std::string difference(const std::vector<TurnAnswer>& real, const std::vector<TurnAnswer>& expected);
std::string difference(const std::optional<StoredSchedule>& real,
                       const std::optional<StoredSchedule>& expected);
std::string difference(const SchedulePage& real, const SchedulePage& expected);

}  // namespace delayq::simulation
