#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include "engine/engine.h"
#include "queue/settings.h"
#include "queue/verbs.h"

namespace delayq {

/// Limits hand-overs to a rate. The bucket holds up to `rate.count` tokens and is refilled evenly within
/// `rate.per`; each hand-over takes a token. So after a quiet time a burst of `rate.count` is possible, and
/// over a longer time no more than the rate. The rate is an argument and may change between calls; the tokens
/// in the bucket are kept. All arithmetic is in whole numbers: nothing is lost to rounding. When the clock
/// jumps back, filling pauses; when it jumps ahead, the bucket is filled once.
class TokenBucket {
 public:
  /// Takes up to `wanted` tokens and returns how many it took. REQUIRES (here and below): rate.count > 0.
  uint32_t take(const Rate& rate, Moment now, uint32_t wanted);
  /// Puts back tokens that were taken and not used.
  void give_back(uint32_t tokens);
  /// When the next token is available; `now` if there is one.
  Moment next_token(const Rate& rate, Moment now);
  /// Whether the bucket is as good as a new one, and can be discarded.
  bool is_full(const Rate& rate, Moment now);

 private:
  void fill(const Rate& rate, Moment now);
  int64_t capacity() const { return rate_.count * rate_.per.count(); }

  Rate rate_;
  int64_t level_ = 0;  ///< tokens times rate_.per; grows by rate_.count every millisecond
  Moment filled_at_{};
};

struct Context;
struct Waiter;

/// What the queue remembers of a topic. The jobs of the topic are stored by the engine.
struct TopicState {
  TopicState(std::string_view topic, uint64_t topic_serial) : name(topic), serial(topic_serial) {}

  const std::string name;
  const uint64_t serial;  ///< order of creation; a sort key that is cheaper than the name
  const EffectiveSettings* settings = nullptr;  ///< never null in KnownTopics; owned by the SettingsBook
  Tallies tallies;
  Lateness lateness;
  TokenBucket tokens;
  uint32_t lent_tokens = 0;  ///< taken for calls to the engine that are not answered yet; see HandOver
  /// By outlet: a waiter got fewer tokens than it wanted while others were lent.
  std::array<bool, kOutletCount> is_starved{};
  absl::btree_map<WaiterId, Waiter*> idle;  ///< waiting consumers, in the order of their pops
  uint64_t last_wake = 0;                   ///< see HandOver
  /// By outlet: because of a limit, the last take for delivery may have left ready jobs.
  std::array<bool, kOutletCount> delivery_waits{};
  Moment refill_at = kNever;  ///< when the topic is woken because of its rate limit; see HandOver
  Moment last_used{};
  size_t place = 0;  ///< index in KnownTopics
};

/// Shared with pending calls that will update the figures of the topic. The Janitor forgets a topic only when
/// no one else has a reference.
using TopicPtr = std::shared_ptr<TopicState>;

/// The topics that have jobs, settings or consumers, or had them until a while ago. It is filled from the
/// engine at start, so a topic that is not here is new.
class KnownTopics {
 public:
  /// New topics have the settings `defaults`, which must outlive this object.
  explicit KnownTopics(const EffectiveSettings& defaults) : defaults_(defaults) {}

  /// Returns null when there is no such topic.
  TopicPtr find(std::string_view topic) const;
  /// The topic's index for at(). It is valid until a topic is added or forgotten.
  std::optional<size_t> place_of(std::string_view topic) const;
  /// Finds the topic, or adds it.
  TopicPtr open(std::string_view topic, Moment now);
  void forget(std::string_view topic);

  size_t size() const { return ring_.size(); }
  /// The order has no meaning, but it is reproducible. REQUIRES: place < size().
  const TopicPtr& at(size_t place) const { return ring_[place]; }

  Tallies& totals() { return totals_; }
  Lateness& total_lateness() { return total_lateness_; }

  /// Counts for the topic (if it is not null) and in total. The totals include forgotten topics.
  void count(TopicState* topic, Tally what, uint64_t number) {
    if (topic != nullptr) topic->tallies.add(what, number);
    totals_.add(what, number);
  }

 private:
  const EffectiveSettings& defaults_;
  absl::flat_hash_map<std::string_view, TopicState*> by_name_;  // the keys are views of TopicState::name
  std::vector<TopicPtr> ring_;
  uint64_t last_serial_ = 0;
  Tallies totals_;
  Lateness total_lateness_;
};

/// The settings of all topics: their own and those in force. The engine stores them; they are read at start,
/// and again when another server has changed them.
class SettingsBook {
 public:
  explicit SettingsBook(const Settings& configured);

  /// Replaces the defaults of the configuration. Settings stored under "*" override them.
  void configure(Settings defaults);
  /// Applies the settings at once; they are durable when the reply is called. Settings with nothing set are
  /// removed. The name is a topic's or "*".
  void set(Context& context, std::string_view name, Settings settings, Reply<void> reply);
  /// Applies the stored settings at start. Returns an error for the first that cannot be read, and applies
  /// the others.
  Status load(Context& context, const std::vector<TopicSettings>& stored);

  struct Changed {
    std::string name;
    bool keeps_less;  ///< see keeps_less()
  };
  /// Replaces the settings by the stored ones. Topics without stored settings fall back to the defaults.
  /// Settings that cannot be read remain as they were. Returns the topics whose settings changed.
  std::vector<Changed> reload(Context& context, const std::vector<TopicSettings>& stored);
  /// How often set() was called. If it was called after the engine was asked for the stored settings, they
  /// are outdated.
  uint64_t sets() const { return sets_; }

  /// The settings of the topic (or "*") itself.
  const Settings& own(std::string_view name) const;
  /// The settings in force for the topic; for "*", the defaults.
  const EffectiveSettings& effective(std::string_view topic) const;
  const EffectiveSettings& defaults() const { return defaults_; }

  /// See Queue.
  Status check_delivery(const Context& context, std::string_view topic) const;
  std::vector<std::pair<std::string, Error>> undeliverable(const Context& context) const;

  /// The topics with settings of their own that come after `after` by name, at most `limit`.
  std::vector<std::string> names_after(std::string_view after, size_t limit) const;

 private:
  struct Entry {
    Settings own;
    EffectiveSettings effective;
    TopicPtr topic;  ///< a reference, so that the Janitor does not forget the topic
  };

  /// Delivery by webhooks needs a callback. Delivery to Redis needs a configured Redis, and a key that the
  /// engine does not use.
  Status check_can_deliver(const Context& context, std::string_view topic, const Settings& settings) const;
  void apply(Context& context, std::string_view name, Settings settings);
  void apply_defaults(Settings settings);
  void refresh(Entry& entry) const;

  uint64_t sets_ = 0;
  Settings configured_;
  Settings stored_defaults_;
  EffectiveSettings defaults_;
  absl::btree_map<std::string, std::unique_ptr<Entry>, std::less<>> topics_;
};

}  // namespace delayq
