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

/// What this server's own news are good for. A call's answer says all that its news do, so they are not
/// listened to; but when the answer is lost, the call may have done its work all the same, and then they are
/// all that is heard of it. They may have come before the loss was known, so everything is looked at once
/// more; and the work may be done later, by a Redis that stood still, so they are listened to for a while.
class Doubt {
 public:
  static constexpr Millis kLookPeriod{1'000};  ///< no look sooner than this after another
  static constexpr Millis kListen{10'000};     ///< after the look

  /// A call was not answered, or Redis could not do it.
  void note_lost() { is_lost_ = is_listening_ = true; }
  /// To be called by each tick. Answers whether everything is to be looked at now.
  bool wants_look(Moment now, bool is_connected);
  /// Whether this server's own news may be news to it.
  bool is_listening() const { return is_listening_; }

 private:
  bool is_lost_ = false;  ///< since the last look
  bool is_listening_ = false;
  Moment looked_ = Moment::min();
};

/// Which shards may have ready jobs of a topic, so that a take need not ask all of them. "May" is the rule: a
/// shard is left out only when it was asked, had no more, and nobody has said since that it got some.
class Hints {
 public:
  explicit Hints(uint32_t shards) : shards_(shards) {}

  bool may_have(uint32_t shard, std::string_view topic, Outlet outlet) const;
  /// A job of that topic has become ready, or is about to.
  void note_ready(uint32_t shard, std::string_view topic, Outlet outlet);
  /// A number that is another one after that was noted; for note_empty().
  uint64_t heard(uint32_t shard, std::string_view topic, Outlet outlet) const;
  /// The shard had no more. Counts only when nothing was noted since heard() answered that.
  void note_empty(uint32_t shard, std::string_view topic, Outlet outlet, uint64_t heard);
  /// News may have been missed.
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

  static constexpr size_t kMostTopics = 10'000;  ///< more are forgotten all together

  size_t place(uint32_t shard, Outlet outlet) const {
    return shard * kOutletCount + static_cast<size_t>(outlet);
  }

  uint32_t shards_;
  uint64_t noted_ = 0;      ///< how many times anything was
  uint64_t forgotten_ = 0;  ///< the last time that a note was not kept at its topic
  std::map<std::string, Lines, std::less<>> topics_;
};

/// When each shard is to be looked at, and whether that is up to this server. Of the servers that share a
/// deployment one drives a shard: it holds a key in Redis that runs out when it is not renewed.
///
/// A look is a round: the head of the shard, which renews the key and answers what is due, and then one call
/// for each of these. A shard has at most one round at a time.
class Driving {
 public:
  static constexpr Millis kRetry{500};  ///< after a round that failed

  /// The key lives for `hold`; its owner renews it in half that time.
  Driving(uint32_t shards, Millis hold) : hold_(hold), shards_(shards) {}

  Millis hold() const { return hold_; }

  /// Whether a round is wanted now.
  bool wants_round(uint32_t shard, Moment now) const;
  /// When the next round is wanted, of any shard, if nothing happens until then.
  Moment next_round() const;

  void begin_round(uint32_t shard, Moment now);
  /// One more call belongs to the round, or one less. The round is over when all were answered.
  void add_call(uint32_t shard) { ++shards_[shard].calls; }
  /// Answers whether the round is over.
  bool end_call(uint32_t shard) { return --shards_[shard].calls == 0; }
  /// The time of the round that is or was.
  Moment round_time(uint32_t shard) const { return shards_[shard].round; }

  /// The head's answer: this server drives the shard until it ought to renew, ...
  void note_mine(uint32_t shard);
  /// ... or another does, whose key lives that long if it is not renewed.
  void note_theirs(uint32_t shard, Millis left);
  void note_failed(uint32_t shard);
  bool is_mine(uint32_t shard) const { return shards_[shard].is_mine; }

  /// The shard is to be looked at then; so said Redis last.
  void set_next(uint32_t shard, Moment next);
  /// News of another server. It came on another way than the answers, so one that is given after it may be
  /// older: it counts until a round that began after it.
  void note_earlier(uint32_t shard, Moment next);
  Moment next(uint32_t shard) const { return shards_[shard].next; }
  /// The same of schedules, which have a key of their own.
  void set_alarm(uint32_t shard, Moment alarm) { shards_[shard].alarm = alarm; }
  Moment alarm(uint32_t shard) const { return shards_[shard].alarm; }
  /// Nothing is known any more: look at everything.
  void forget();

 private:
  struct Shard {
    bool is_mine = false;
    uint32_t calls = 0;            ///< of the round that is going on
    Moment round = Moment::min();  ///< when it began
    Moment look = Moment::min();   ///< at the latest: to renew the key, or to try to get it
    Moment next = Moment::min();   ///< what the shard's head says
    Moment alarm = kNever;         ///< what it says of schedules
    Moment heard = kNever;         ///< the earliest that other servers told since the last round began
  };

  Moment due(const Shard& shard) const;

  Millis hold_;
  std::vector<Shard> shards_;
};

}  // namespace delayq::redis
