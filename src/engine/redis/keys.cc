#include "engine/redis/keys.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/siphash.h"
#include "net/redis/slot.h"

namespace delayq::redis {

namespace {

/// What comes before the topic's name. A key of the shard itself has no topic in it.
struct Shape {
  std::string_view before;
  bool has_topic;
};

constexpr std::array<Shape, kTopicKeys> kShapes{{
    {"job:", true},
    {"delay:", true},
    {"ready:", true},
    {"called:", true},
    {"held:", true},
    {"lease:", true},
    {"done:", true},
    {"dead:", true},
    {"kept:", true},
    {"full:", true},
    {"topics", false},
    {"seq", false},
    {"next", false},
    {"group:", false},
}};

/// Fixed for all time: it says where jobs are. (It guards against nothing; an uneven spread only costs
/// speed.)
constexpr SipKey kSpread{0x64656c6179712072, 0x6564697320736864};
/// Says where a prefix's first shard is. Tags are written down when a deployment is made, so this may change.
constexpr SipKey kPhase{0x64656c6179712072, 0x6564697320746167};

}  // namespace

Tags numbered_tags(uint32_t shards) {
  Tags tags;
  for (uint32_t shard = 0; shard < shards; ++shard) tags.push_back(std::to_string(shard));
  return tags;
}

Tags spread_tags(std::string_view prefix, uint32_t shards) {
  using net::redis::kSlots;
  const uint64_t phase = siphash128(kPhase, prefix).low % (kSlots / shards);
  std::map<uint64_t, uint32_t> wanted;  // slot -> shard
  for (uint32_t shard = 0; shard < shards; ++shard) wanted[phase + uint64_t{shard} * kSlots / shards] = shard;
  Tags tags(shards);
  // Numbers of five digits have all slots.
  for (uint32_t number = 0; !wanted.empty(); ++number) {
    std::string tag = std::to_string(number);
    const auto found = wanted.find(net::redis::slot_of(tag));
    if (found == wanted.end()) continue;
    tags[found->second] = std::move(tag);
    wanted.erase(found);
  }
  return tags;
}

TopicKeys::TopicKeys(std::string_view prefix, std::string_view shard, std::string_view topic) {
  const std::string tag = fmt::format("{}:{{{}}}:", prefix, shard);
  size_t size = 0;
  for (const Shape& shape : kShapes)
    size += tag.size() + shape.before.size() + (shape.has_topic ? topic.size() : 0);
  bytes_ = std::make_unique_for_overwrite<char[]>(size);
  char* next = bytes_.get();
  const auto append = [&next](std::string_view text) { next = std::copy(text.begin(), text.end(), next); };
  for (size_t i = 0; i < kTopicKeys; ++i) {
    const char* const begin = next;
    append(tag);
    append(kShapes[i].before);
    if (kShapes[i].has_topic) append(topic);
    names_[i] = {begin, static_cast<size_t>(next - begin)};
  }
}

Keyspace::Keyspace(std::string prefix, Tags tags) : prefix_(std::move(prefix)), tags_(std::move(tags)) {
  assert(!tags_.empty());
}

uint32_t Keyspace::shard_of(std::string_view id) const {
  if (tags_.size() == 1) return 0;
  return static_cast<uint32_t>(siphash128(kSpread, id).low % tags_.size());
}

std::string Keyspace::in_shard(uint32_t shard, std::string_view name) const {
  return fmt::format("{}:{{{}}}:{}", prefix_, tags_[shard], name);
}

std::string Keyspace::shared(std::string_view name) const { return fmt::format("{}:{}", prefix_, name); }

}  // namespace delayq::redis
