#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include "queue/settings.h"
#include "queue/verbs.h"

namespace delayq {

/// Bounds hand-overs to a rate: it holds up to `rate.count` tokens, fills evenly in `rate.per`, and each
/// hand-over takes one. So after a rest a burst of `rate.count` may leave at once, and over any longer time
/// no more than the rate. The rate is an argument and may change between calls; what is in the bucket is
/// carried over. Whole numbers only: nothing is lost to rounding. A clock that jumps back pauses the filling,
/// one that jumps ahead fills it once.
class TokenBucket {
 public:
  /// Takes up to `wanted` tokens and answers how many there were. REQUIRES (here and below): rate.count > 0.
  uint32_t take(const Rate& rate, Moment now, uint32_t wanted);
  /// Puts back what was taken and not used.
  void give_back(uint32_t tokens);
  /// When there will be a token; `now` when there is one.
  Moment next_token(const Rate& rate, Moment now);
  /// Nothing is lost when this bucket is thrown away.
  bool is_full(const Rate& rate, Moment now);

 private:
  void fill(const Rate& rate, Moment now);
  int64_t capacity() const { return rate_.count * rate_.per.count(); }

  Rate rate_;
  int64_t level_ = 0;  ///< in tokens times rate_.per: grows by rate_.count every millisecond
  Moment filled_at_{};
};

struct Waiter;

/// What the queue itself remembers of a topic; its jobs are the engine's business.
struct TopicState {
  TopicState(std::string_view topic, uint64_t topic_serial) : name(topic), serial(topic_serial) {}

  const std::string name;
  const uint64_t serial;  ///< order of creation; orders topics where names are not needed
  const EffectiveSettings* settings = nullptr;  ///< never null in the table; belongs to the SettingsBook
  Tallies tallies;
  Lateness lateness;
  TokenBucket tokens;
  uint32_t lent_tokens = 0;  ///< taken for calls to the engine that are not answered yet; see HandOver
  /// By outlet: somebody got fewer tokens than he wanted while others were lent.
  std::array<bool, kOutletCount> is_starved{};
  absl::btree_map<WaiterId, Waiter*> idle;  ///< consumers that wait, in the order in which they came
  uint64_t last_wake = 0;                   ///< see HandOver
  /// By outlet: somebody who delivers did not get all there may be, because of a limit.
  std::array<bool, kOutletCount> delivery_waits{};
  Moment refill_at = kNever;  ///< when the topic is to be woken for its rate limit; see HandOver
  Moment last_used{};
  size_t place = 0;  ///< in the table's ring
};

/// Shared with the calls under way that will want to count something; the janitor forgets only what nobody
/// holds.
using TopicPtr = std::shared_ptr<TopicState>;

/// The topics that have jobs, settings or consumers, or had them a while ago. Filled from the engine at
/// start, so a topic that is not here is new.
class KnownTopics {
 public:
  /// New topics get `defaults`, which must outlive the table.
  explicit KnownTopics(const EffectiveSettings& defaults) : defaults_(defaults) {}

  /// Null when there is no such topic.
  TopicPtr find(std::string_view topic) const;
  /// Where it is in at(), as long as no topic comes or goes.
  std::optional<size_t> place_of(std::string_view topic) const;
  /// The topic, made when it is new.
  TopicPtr open(std::string_view topic, Moment now);
  void forget(std::string_view topic);

  size_t size() const { return ring_.size(); }
  /// The topic at `place`, in no particular but in a reproducible order. REQUIRES: place < size().
  const TopicPtr& at(size_t place) const { return ring_[place]; }

  Tallies& totals() { return totals_; }
  Lateness& total_lateness() { return total_lateness_; }

  /// Counts for the topic (when there is one) and in total. What is forgotten stays in the totals.
  void count(TopicState* topic, Tally what, uint64_t number) {
    if (topic != nullptr) topic->tallies.add(what, number);
    totals_.add(what, number);
  }

 private:
  const EffectiveSettings& defaults_;
  absl::flat_hash_map<std::string_view, TopicState*> by_name_;  // keys are the names inside the states
  std::vector<TopicPtr> ring_;
  uint64_t last_serial_ = 0;
  Tallies totals_;
  Lateness total_lateness_;
};

}  // namespace delayq
