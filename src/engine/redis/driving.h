#pragma once

#include <cstdint>
#include <vector>

#include "core/time.h"

namespace delayq::redis {

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
  /// Nothing is known any more: look at everything.
  void forget();

 private:
  struct Shard {
    bool is_mine = false;
    uint32_t calls = 0;            ///< of the round that is going on
    Moment round = Moment::min();  ///< when it began
    Moment look = Moment::min();   ///< at the latest: to renew the key, or to try to get it
    Moment next = Moment::min();   ///< what the shard's head says
    Moment heard = kNever;         ///< the earliest that other servers told since the last round began
  };

  Moment due(const Shard& shard) const;

  Millis hold_;
  std::vector<Shard> shards_;
};

}  // namespace delayq::redis
