#include "engine/redis/keys.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "core/siphash.h"

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

}  // namespace

TopicKeys::TopicKeys(std::string_view prefix, uint32_t shard, std::string_view topic) {
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

Keyspace::Keyspace(std::string prefix, uint32_t shards) : prefix_(std::move(prefix)), shards_(shards) {
  assert(shards > 0);
}

uint32_t Keyspace::shard_of(std::string_view id) const {
  if (shards_ == 1) return 0;
  return static_cast<uint32_t>(siphash128(kSpread, id).low % shards_);
}

std::string Keyspace::in_shard(uint32_t shard, std::string_view name) const {
  return fmt::format("{}:{{{}}}:{}", prefix_, shard, name);
}

std::string Keyspace::shared(std::string_view name) const { return fmt::format("{}:{}", prefix_, name); }

}  // namespace delayq::redis
