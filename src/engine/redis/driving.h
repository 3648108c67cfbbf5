#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/time.h"

namespace delayq::redis {

/// Decides when this server uses the news that it published itself. The reply of a call contains everything
/// that its news say, so normally a server ignores its own news. But if the reply is lost, the call may have
/// taken effect anyway, and then the news are the only information about it. They may have arrived before the
/// loss was known, so everything is checked once. A Redis that was blocked may run the call later, so the
/// server also listens to its own news for a while.
class Doubt {
 public:
  static constexpr Millis kLookPeriod{1'000};  ///< minimum time between two checks
  static constexpr Millis kListen{10'000};     ///< how long to listen after the check

  /// A call got no reply, or Redis could not run it.
  void note_lost() { is_lost_ = is_listening_ = true; }
  /// Call in each tick. Returns whether everything is to be checked now.
  bool wants_look(Moment now, bool is_connected);
  /// Whether this server should use its own news.
  bool is_listening() const { return is_listening_; }

 private:
  bool is_lost_ = false;  ///< since the last look
  bool is_listening_ = false;
  Moment looked_ = Moment::min();
};

/// Which shards may have ready jobs of a topic, so that a take need not ask all of them. A shard is skipped
/// only if it was asked, had no more, and no ready jobs were reported since.
class Hints {
 public:
  explicit Hints(uint32_t shards) : shards_(shards) {}

  bool may_have(uint32_t shard, std::string_view topic, Outlet outlet) const;
  /// A job of that topic has become ready, or is about to.
  void note_ready(uint32_t shard, std::string_view topic, Outlet outlet);
  /// Returns a number that changes with every note_ready(). It is an argument of note_empty().
  uint64_t heard(uint32_t shard, std::string_view topic, Outlet outlet) const;
  /// The shard had no more ready jobs. Ignored if note_ready() was called after heard() returned this number.
  void note_empty(uint32_t shard, std::string_view topic, Outlet outlet, uint64_t heard);
  /// Call when news may have been missed.
  void forget() {
    topics_.clear();
    forgotten_ = ++noted_;
  }

 private:
  struct Line {
    uint64_t heard = 0;
    bool is_empty = false;
  };
  using Lines = std::vector<Line>;  ///< by shard and outlet

  static constexpr size_t kMostTopics = 10'000;  ///< if there are more, all are dropped

  size_t place(uint32_t shard, Outlet outlet) const {
    return shard * kOutletCount + static_cast<size_t>(outlet);
  }

  uint32_t shards_;
  uint64_t noted_ = 0;      ///< number of note_ready() calls
  uint64_t forgotten_ = 0;  ///< number of the last call that was not stored with its topic
  std::map<std::string, Lines, std::less<>> topics_;
};

/// When each shard must be visited, and whether this server does it. Of the servers that share a deployment,
/// one drives each shard: it holds a key in Redis that expires if it is not renewed.
///
/// A visit is a round: first a call that renews the key and returns what is due (head.lua), then one call for
/// each due entry. A shard has at most one round at a time.
class Driving {
 public:
  static constexpr Millis kRetry{500};  ///< after a round that failed

  /// The key expires after `hold`; the driver renews it after half that time.
  Driving(uint32_t shards, Millis hold) : hold_(hold), shards_(shards) {}

  Millis hold() const { return hold_; }

  /// Whether a round should start now.
  bool wants_round(uint32_t shard, Moment now) const;
  /// When the next round of any shard should start, if nothing happens before.
  Moment next_round() const;

  void begin_round(uint32_t shard, Moment now);
  /// Adds one call to the round. The round ends when all its calls have replies.
  void add_call(uint32_t shard) { ++shards_[shard].calls; }
  /// Returns whether the round has ended.
  bool end_call(uint32_t shard) { return --shards_[shard].calls == 0; }
  /// The start time of the current or last round.
  Moment round_time(uint32_t shard) const { return shards_[shard].round; }

  /// The reply of head.lua: this server drives the shard until it must renew the key, ...
  void note_mine(uint32_t shard);
  /// ... or another server does, whose key expires after `left` if it is not renewed.
  void note_theirs(uint32_t shard, Millis left);
  void note_failed(uint32_t shard);
  bool is_mine(uint32_t shard) const { return shards_[shard].is_mine; }

  /// Redis reported that the shard must be visited at `next`.
  void set_next(uint32_t shard, Moment next);
  /// Another server published an earlier time. News and replies use different connections, so a reply that is
  /// read after the news may be older. The news count until a round that began after them.
  void note_earlier(uint32_t shard, Moment next);
  Moment next(uint32_t shard) const { return shards_[shard].next; }
  /// The same of schedules, which have a key of their own.
  void set_alarm(uint32_t shard, Moment alarm) { shards_[shard].alarm = alarm; }
  Moment alarm(uint32_t shard) const { return shards_[shard].alarm; }
  /// All knowledge is outdated: visit every shard.
  void forget();

 private:
  struct Shard {
    bool is_mine = false;
    uint32_t calls = 0;            ///< calls of the current round without a reply
    Moment round = Moment::min();  ///< start of the current or last round
    Moment look = Moment::min();   ///< when to renew the key, or to try to get it
    Moment next = Moment::min();   ///< what the shard's head reported
    Moment alarm = kNever;         ///< what it reported about schedules
    /// the earliest time that other servers published since the last round began
    Moment heard = kNever;
  };

  Moment due(const Shard& shard) const;

  Millis hold_;
  std::vector<Shard> shards_;
};

}  // namespace delayq::redis
