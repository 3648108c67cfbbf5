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

/// The keys of one topic in one shard, and the keys of the shard that a change of a topic uses. Every script
/// about a topic gets all of them, in this order; scripts/prelude.lua gives them names.
enum class Key : uint8_t {
  kPool,           ///< hash: id -> record, for all states
  kDelay,          ///< zset: id by due time: the delay stage
  kReady,          ///< zset: rank and id, in hand-over order
  kReadyCallback,  ///< the same for the other outlet
  kHeld,           ///< zset: id by the number of its lease
  kLease,          ///< zset: id by when its lease must be checked
  kDone,           ///< zset: id by when it entered
  kDead,           ///< the same for dead jobs
  kKept,           ///< zset: done and dead ids by the end of their retention
  kFull,           ///< string: exists if a take was limited by `max_reserved`
  kTopics,         ///< zset, of the shard: topics that have jobs in it
  kSequence,       ///< counter, of the shard: pushes, entries and leases
  kNext,           ///< zset, of the shard: "d", "l" or "k" and a topic, by when it must be visited
  kGroups,         ///< prefix of the keys of groups: sets of "topic/id", of the shard
};
inline constexpr size_t kTopicKeys = 14;

/// The names of these keys.
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

/// The hash tags of a deployment's shards, by shard number.
using Tags = std::vector<std::string>;

/// "0", "1", ...: the tags of a single shard, and of deployments that were made before there were other tags.
Tags numbered_tags(uint32_t shards);
/// Returns numbers whose hash slots have equal distances. However many masters share the slots of a cluster
/// in equal parts, the numbers of shards on any two masters differ by at most one, or by two if the number of
/// slots is not a multiple of the number of shards. The prefix determines the first slot, so that deployments
/// in one cluster use different masters.
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

/// The key names of a deployment. All keys of the shard with tag "3" begin with "delayq:{3}:". The braces
/// make "3" the hash tag, so a cluster keeps these keys together.
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
  /// The name of a key of the shard itself: "topics", "driver", "next", ...
  std::string in_shard(uint32_t shard, std::string_view name) const;
  /// The name of a key that belongs to no shard: "settings", "meta", and the channel "news".
  std::string shared(std::string_view name) const;

 private:
  std::string prefix_;
  Shards shards_;
};

/// The channel on which servers publish changes, without the prefix.
inline constexpr std::string_view kNewsChannel = "news";

/// How the jobs of a deployment are stored. The first server that uses a prefix stores this, and it
/// is fixed from then on.
struct Layout {
  std::string version;  ///< of records and keys
  std::string shards;   ///< how many there are
  std::string tags{};   ///< separated by spaces; none in version 1, where they are numbered
};

/// Stores the layout under the key `meta`, unless there is one. The reply has the layout in force, for
/// read_layout().
void settle_layout(net::redis::Client& client, std::string_view meta, const Shards& shards,
                   net::redis::Answer answer);
/// Only reads the layout. For a new deployment all texts are empty.
void find_layout(net::redis::Client& client, std::string_view meta, net::redis::Answer answer);
/// nullopt: malformed reply.
std::optional<Layout> read_layout(const resp::Value& answer);

/// Tries all commands of the scripts, on the channel of the prefix and on an unused key with this `name`. The
/// reply is for refused_commands().
void try_rights(net::redis::Client& client, std::string_view prefix, std::string_view name,
                net::redis::Answer answer);
/// The commands that the Redis user may not call, such as "PUBLISH, TIME"; empty: none.
std::string refused_commands(const resp::Value& answer);

/// Returns the shards of a layout. kUnavailable, with advice, if this program does not know the layout or if
/// `configured` is a different number of shards; 0 accepts any number.
Result<Shards> shards_of(const Layout& layout, std::string_view prefix, uint32_t configured);

}  // namespace delayq::redis
