#include "engine/redis/keys.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/moment.h"
#include "core/siphash.h"
#include "engine/redis/arguments.h"
#include "engine/redis/scripts.h"
#include "net/redis/client.h"

namespace delayq::redis {

namespace {

/// The part of a key before the name of the topic. A key of the shard itself contains no topic.
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

/// Must never change: it determines where jobs are stored. (It protects against nothing; an uneven
/// distribution only costs speed.)
constexpr SipKey kSpread{0x64656c6179712072, 0x6564697320736864};
/// Determines the first slot of a prefix. The tags are stored when a deployment is made, so this may change.
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
  // Numbers of up to five digits cover all slots.
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

Shards new_shards(std::string_view prefix, uint32_t count) {
  if (count == 1) return numbered_shards(1);
  return {spread_tags(prefix, count), LayoutVersion::kTogether};
}

Shards numbered_shards(uint32_t count) { return {numbered_tags(count), LayoutVersion::kNumbered}; }

Keyspace::Keyspace(std::string prefix, Shards shards)
    : prefix_(std::move(prefix)), shards_(std::move(shards)) {
  assert(!shards_.tags.empty());
}

uint32_t Keyspace::shard_of(std::string_view id) const {
  if (shards() == 1) return 0;
  return shard_of_schedule(has_schedules() ? occurrence_owner(id) : id);
}

uint32_t Keyspace::shard_of_schedule(std::string_view name) const {
  if (shards() == 1) return 0;
  return static_cast<uint32_t>(siphash128(kSpread, name).low % shards());
}

ScheduleKeys Keyspace::schedules(uint32_t shard) const {
  return {topic(shard, {}),
          {in_shard(shard, "turn"), in_shard(shard, "schedule"), in_shard(shard, "schedules"),
           in_shard(shard, "alarm")}};
}

std::string Keyspace::in_shard(uint32_t shard, std::string_view name) const {
  return fmt::format("{}:{{{}}}:{}", prefix_, shards_.tags[shard], name);
}

std::string Keyspace::shared(std::string_view name) const { return fmt::format("{}:{}", prefix_, name); }

namespace {

std::string text_of(LayoutVersion version) { return std::to_string(static_cast<int>(version)); }

Error refused(std::string detail) { return {ErrorCode::kUnavailable, "redis", std::move(detail), {}}; }

std::string joined(const Tags& tags) {
  std::string all;
  for (const std::string& tag : tags) all += (all.empty() ? "" : " ") + tag;
  return all;
}

/// Splits a text at spaces. The result has one more part than there are spaces; parts may be empty.
Tags parted(std::string_view all) {
  Tags tags;
  for (;;) {
    const size_t space = all.find(' ');
    tags.emplace_back(all.substr(0, space));
    if (space == std::string_view::npos) return tags;
    all.remove_prefix(space + 1);
  }
}

/// Whether the text can be the hash tag of a key.
bool is_tag(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

void settle_layout(net::redis::Client& client, std::string_view meta, const Shards& shards,
                   net::redis::Answer answer) {
  Arguments arguments;
  arguments.text(text_of(shards.version)).number(shards.tags.size());
  arguments.text(shards.version == LayoutVersion::kNumbered ? std::string() : joined(shards.tags));
  client.run(scripts::kMeta, {&meta, 1}, arguments.words(), std::move(answer));
}

void find_layout(net::redis::Client& client, std::string_view meta, net::redis::Answer answer) {
  client.call(meta, {"HMGET", meta, "version", "shards", "tags"}, std::move(answer));
}

std::optional<Layout> read_layout(const resp::Value& answer) {
  if (answer.items.size() != 3) return std::nullopt;
  return Layout{answer.items[0].text, answer.items[1].text, answer.items[2].text};
}

void try_rights(net::redis::Client& client, std::string_view prefix, std::string_view name,
                net::redis::Answer answer) {
  const std::string key = fmt::format("{}:{}", prefix, name);
  const std::string channel = fmt::format("{}:{}", prefix, kNewsChannel);
  Arguments arguments;
  arguments.text(channel);
  const std::string_view keys = key;
  client.run(scripts::kRights, {&keys, 1}, arguments.words(), std::move(answer));
}

std::string refused_commands(const resp::Value& answer) {
  std::string commands;
  for (const resp::Value& command : answer.items)
    commands += fmt::format("{}{}", commands.empty() ? "" : ", ", command.text);
  return commands;
}

Result<Shards> shards_of(const Layout& layout, std::string_view prefix, uint32_t configured) {
  std::optional<LayoutVersion> version;
  for (const auto known : {LayoutVersion::kNumbered, LayoutVersion::kTagged, LayoutVersion::kTogether}) {
    if (layout.version == text_of(known)) version = known;
  }
  if (!version)
    return refused(fmt::format(
        "the jobs under the prefix \"{}\" have layout {}; this program knows layouts {} to {}", prefix,
        layout.version, text_of(LayoutVersion::kNumbered), text_of(LayoutVersion::kTogether)));
  uint32_t shards = 0;
  const char* const end = layout.shards.data() + layout.shards.size();
  const auto [stop, problem] = std::from_chars(layout.shards.data(), end, shards);
  if (problem != std::errc{} || stop != end || shards == 0)
    return refused(fmt::format("the jobs under the prefix \"{}\" are in \"{}\" shards, which is no number",
                               prefix, layout.shards));
  if (configured != 0 && configured != shards)
    return refused(
        fmt::format("the jobs under the prefix \"{}\" are in {} shards, and redis.shards is {}: "
                    "leave it out, or use another redis.prefix",
                    prefix, shards, configured));
  if (version == LayoutVersion::kNumbered) return numbered_shards(shards);
  Tags tags = parted(layout.tags);
  if (tags.size() != shards || !std::all_of(tags.begin(), tags.end(), is_tag))
    return refused(fmt::format("the jobs under the prefix \"{}\" are in {} shards, and their tags are \"{}\"",
                               prefix, shards, layout.tags));
  return Shards{std::move(tags), *version};
}

}  // namespace delayq::redis
