#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <absl/functional/any_invocable.h>

#include "engine/redis/cold_store.h"

namespace delayq::support {

/// What a cold store keeps: it outlives the servers that use it. One partition for each step.
struct ColdShelf {
  struct Entry {
    Moment release{};
    std::string value;
    bool is_gone = false;
  };
  struct Log {
    std::vector<Entry> entries;
    size_t committed = 0;
  };

  /// In ascending order.
  std::vector<Millis> steps{Millis{1},         Millis{10},         Millis{100},
                            Millis{1'000},     Millis{10'000},     Millis{100'000},
                            Millis{1'000'000}, Millis{10'000'000}, Millis{86'400'000}};
  Millis horizon{0};
  std::map<uint32_t, Log> logs;

  /// How many records are in all steps, with those that nobody needs any more.
  size_t size() const {
    size_t sum = 0;
    for (const auto& [step, log] : logs) sum += log.entries.size();
    return sum;
  }
};

/// A cold store in memory. Replies come with the next poll(). A test sets what goes wrong.
class FakeColdStore final : public redis::ColdStore {
 public:
  explicit FakeColdStore(ColdShelf& shelf) : shelf_(shelf) { forget_positions(); }

  bool is_away = false;              ///< nothing is stored or read
  bool loses_confirmations = false;  ///< records are stored, and the reply is an error
  bool keeps_arrivals_back = false;  ///< nothing comes back by itself
  size_t largest = size_t{1} << 30;  ///< larger values are refused
  bool holds_replies = false;        ///< no reply comes

  /// As a server does that begins anew.
  void forget_positions() {
    positions_.clear();
    open_.clear();
  }

  std::optional<uint32_t> step_for(Millis left) const override {
    for (auto step = static_cast<uint32_t>(shelf_.steps.size()); step-- > 0;) {
      if (shelf_.steps[step] + shelf_.horizon <= left) return step;
    }
    return std::nullopt;
  }
  Millis least() const override { return shelf_.steps.front() + shelf_.horizon; }

  void put(Moment now, uint32_t step, std::string_view key, std::string_view value,
           Reply<redis::ColdPlace> reply) override {
    (void)key;
    Result<redis::ColdPlace> result = away();
    if (value.size() > largest) {
      result = Error{ErrorCode::kTooLarge, "put", "the record is too large"};
    } else if (!is_away) {
      std::vector<ColdShelf::Entry>& entries = shelf_.logs[step].entries;
      const redis::ColdPlace place{step, 0, static_cast<int64_t>(entries.size())};
      entries.push_back({now + shelf_.steps[step], std::string(value)});
      if (!loses_confirmations) result = place;
    }
    replies_.push_back(
        [reply = std::move(reply), result = std::move(result)]() mutable { reply(std::move(result)); });
  }

  void fetch(const redis::ColdPlace& place, Reply<std::optional<std::string>> reply) override {
    Result<std::optional<std::string>> result = away();
    if (!is_away) {
      const std::vector<ColdShelf::Entry>& entries = shelf_.logs[place.step].entries;
      const auto offset = static_cast<size_t>(place.offset);
      std::optional<std::string> value;
      if (offset < entries.size() && !entries[offset].is_gone) value = entries[offset].value;
      result = std::move(value);
    }
    replies_.push_back(
        [reply = std::move(reply), result = std::move(result)]() mutable { reply(std::move(result)); });
  }

  std::vector<Record> arrivals(Moment now) override {
    std::vector<Record> records;
    if (is_away || keeps_arrivals_back) return records;
    for (const auto& [step, log] : shelf_.logs) {
      size_t& position = positions_.try_emplace(step, log.committed).first->second;
      for (; position < log.entries.size() && log.entries[position].release <= now; ++position) {
        records.push_back({{step, 0, static_cast<int64_t>(position)}, log.entries[position].value});
        open_.insert(records.back().place);
      }
    }
    return records;
  }

  void finish(const redis::ColdPlace& place) override {
    if (open_.erase(place) == 0) return;
    ColdShelf::Log& log = shelf_.logs[place.step];
    const auto first = open_.lower_bound({place.step, 0, 0});
    const bool is_any_open = first != open_.end() && first->step == place.step;
    log.committed = is_any_open ? static_cast<size_t>(first->offset) : positions_[place.step];
  }

  Moment tick(Moment now) override {
    (void)now;
    Moment next = kNever;
    if (is_away || keeps_arrivals_back) return next;
    for (const auto& [step, log] : shelf_.logs) {
      const auto found = positions_.find(step);
      const size_t position = found == positions_.end() ? log.committed : found->second;
      if (position < log.entries.size()) next = std::min(next, log.entries[position].release);
    }
    return next;
  }

  bool poll() override {
    if (holds_replies) return false;
    auto replies = std::exchange(replies_, {});
    for (auto& give : replies) give();
    return !replies.empty();
  }
  size_t outstanding() const override { return replies_.size(); }
  void set_wakeup(std::function<void()> wakeup) override { (void)wakeup; }

 private:
  static Error away() { return {ErrorCode::kUnavailable, "cold", "the cold store is away"}; }

  ColdShelf& shelf_;
  std::map<uint32_t, size_t> positions_;  ///< of the next arrival, by step
  std::set<redis::ColdPlace> open_;       ///< have come back, and are not finished
  std::deque<absl::AnyInvocable<void()>> replies_;
};

}  // namespace delayq::support
