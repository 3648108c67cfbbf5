#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/redis/client.h"

namespace delayq::redis {

/// The keys of one topic in one shard, and with them those of the shard that a change of a topic touches.
/// Every script about a topic gets all of them, in this order: scripts/prelude.lua names them.
enum class Key : uint8_t {
  kPool,           ///< hash: id -> record, of all states
  kDelay,          ///< zset: id by due time: the delay stage
  kReady,          ///< zset: rank and id, in the order of hand-over
  kReadyCallback,  ///< the same for the other outlet
  kHeld,           ///< zset: id by the number of its lease
  kLease,          ///< zset: id by when its lease is to be looked at
  kDone,           ///< zset: id by when it entered
  kDead,           ///< the same
  kKept,           ///< zset: done and dead ids by the end of their retention
  kFull,           ///< string: a take was held back by `max_reserved`
  kTopics,         ///< zset, of the shard: topics that have jobs in it
  kSequence,       ///< counter, of the shard: pushes, entries and leases
  kNext,           ///< zset, of the shard: "d", "l" or "k" and a topic by when it is to be looked at
  kGroups,         ///< the beginning of the names of groups: sets of "topic/id", of the shard
};
inline constexpr size_t kTopicKeys = 14;

/// These keys, written out.
class TopicKeys {
 public:
  TopicKeys(std::string_view prefix, std::string_view tag, std::string_view topic);

  std::span<const std::string_view> all() const { return names_; }
  std::string_view operator[](Key key) const { return names_[static_cast<size_t>(key)]; }

 private:
  std::unique_ptr<char[]> bytes_;
  std::array<std::string_view, kTopicKeys> names_;
};

/// The keys that every script about schedules gets (scripts/prelude_schedules.lua): those of a topic without
/// a name, and four of the shard.
///
///   turn       hash: name -> the changing part of a schedule (record.h)
///   schedule   hash: name -> its definition
///   schedules  zset: names, all scores are 0
///   alarm      zset: names by when to report the schedule
class ScheduleKeys {
 public:
  ScheduleKeys(TopicKeys keys, std::array<std::string, 4> own)
      : keys_(std::move(keys)), own_(std::move(own)) {}

  /// Views into this.
  std::vector<std::string_view> all() const {
    std::vector<std::string_view> names(keys_.all().begin(), keys_.all().end());
    names.insert(names.end(), own_.begin(), own_.end());
    return names;
  }

 private:
  TopicKeys keys_;
  std::array<std::string, 4> own_;
};

/// The tags of a deployment's shards, by their numbers.
using Tags = std::vector<std::string>;

/// "0", "1", ...: those of a single shard, and of deployments that were made before there were others.
Tags numbered_tags(uint32_t shards);
/// Numbers whose slots are evenly far from each other. However many masters share the slots of a cluster,
/// each a part of equal size, the shards of one are never more than one more than those of another. Where the
/// first one is, the prefix says, so that deployments that share a cluster load different masters.
/// REQUIRES: at most 256 shards.
Tags spread_tags(std::string_view prefix, uint32_t shards);

/// The versions of the layout. With one shard all of them are the same, and kNumbered is written.
enum class LayoutVersion : uint8_t {
  kNumbered = 1,  ///< tags are "0", "1", ...
  kTagged = 2,    ///< tags are written down
  kTogether = 3,  ///< besides, a schedule and its jobs are in one shard (ADR 26)
};

/// The shards of a deployment.
struct Shards {
  Tags tags{"0"};
  LayoutVersion version = LayoutVersion::kNumbered;

  bool operator==(const Shards&) const = default;
};
/// Those of a new deployment.
Shards new_shards(std::string_view prefix, uint32_t count);
/// Those of the first deployments.
Shards numbered_shards(uint32_t count);

/// How a deployment names its keys. All keys of a shard whose tag is "3" begin with "delayq:{3}:": the braces
/// make it one hash tag, so that a cluster keeps them together.
class Keyspace {
 public:
  /// REQUIRES: at least one shard.
  Keyspace(std::string prefix, Shards shards);
  Keyspace(std::string prefix, uint32_t shards) : Keyspace(std::move(prefix), numbered_shards(shards)) {}

  uint32_t shards() const { return static_cast<uint32_t>(shards_.tags.size()); }
  const Shards& layout() const { return shards_; }
  /// The shard of a job. It does not depend on the topic, so that an id alone is enough to find a job.
  uint32_t shard_of(std::string_view id) const;
  /// The shard of a schedule, and of its jobs if has_schedules().
  uint32_t shard_of_schedule(std::string_view name) const;
  /// Whether the jobs of a schedule are in its shard, whatever their topics. Not so in deployments with
  /// several shards of the first two layouts, which therefore have no schedules.
  bool has_schedules() const { return shards() == 1 || shards_.version == LayoutVersion::kTogether; }

  TopicKeys topic(uint32_t shard, std::string_view name) const {
    return {prefix_, shards_.tags[shard], name};
  }
  ScheduleKeys schedules(uint32_t shard) const;
  /// A key of the shard itself: "topics", "driver", "next", ...
  std::string in_shard(uint32_t shard, std::string_view name) const;
  /// What is of no shard: "settings", "meta", and "news", the channel.
  std::string shared(std::string_view name) const;

 private:
  std::string prefix_;
  Shards shards_;
};

/// On which servers tell each other what is new, below the prefix.
inline constexpr std::string_view kNewsChannel = "news";

/// How a deployment's jobs are laid out. The first server that uses a prefix writes it down, and it holds for
/// all that come later.
struct Layout {
  std::string version;  ///< of records and keys
  std::string shards;   ///< how many there are
  std::string tags{};   ///< theirs, with spaces between them; of version 1 none: they are numbered
};

/// Writes the layout down under `meta`, the key for it, unless that has been done. What holds then is in the
/// answer, for read_layout().
void settle_layout(net::redis::Client& client, std::string_view meta, const Shards& shards,
                   net::redis::Answer answer);
/// Only reads it; of a deployment that is new all texts are empty.
void find_layout(net::redis::Client& client, std::string_view meta, net::redis::Answer answer);
/// nullopt: that is no answer to this.
std::optional<Layout> read_layout(const resp::Value& answer);

/// Tries what the scripts do, on the prefix's channel and on a key that nobody else has: `name` below the
/// prefix. The answer is for refused_commands().
void try_rights(net::redis::Client& client, std::string_view prefix, std::string_view name,
                net::redis::Answer answer);
/// The commands that the user may not call, "PUBLISH, TIME"; empty: none.
std::string refused_commands(const resp::Value& answer);

/// The shards that a layout has. kUnavailable, with what to do about it, when this program does not know the
/// layout or when `configured` is another number of shards; 0: any will do.
Result<Shards> shards_of(const Layout& layout, std::string_view prefix, uint32_t configured);

}  // namespace delayq::redis
