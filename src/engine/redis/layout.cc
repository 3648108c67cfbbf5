#include "engine/redis/layout.h"

#include <charconv>

#include <fmt/format.h>

#include "engine/redis/arguments.h"
#include "engine/redis/scripts.h"

namespace delayq::redis {

namespace {

Error refused(std::string detail) { return {ErrorCode::kUnavailable, "redis", std::move(detail), {}}; }

}  // namespace

void settle_layout(net::redis::Client& client, std::string_view meta, uint32_t shards,
                   net::redis::Answer answer) {
  Arguments arguments;
  arguments.number(kRecordVersion).number(shards);
  client.run(scripts::kMeta, {&meta, 1}, arguments.words(), std::move(answer));
}

void find_layout(net::redis::Client& client, std::string_view meta, net::redis::Answer answer) {
  client.call(meta, {"HMGET", meta, "version", "shards"}, std::move(answer));
}

std::optional<Layout> read_layout(const resp::Value& answer) {
  if (answer.items.size() != 2) return std::nullopt;
  return Layout{answer.items[0].text, answer.items[1].text};
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

Result<uint32_t> shards_of(const Layout& layout, std::string_view prefix, uint32_t configured) {
  if (layout.version != std::to_string(kRecordVersion))
    return refused(
        fmt::format("the jobs under the prefix \"{}\" have layout {}; this program knows layout {}", prefix,
                    layout.version, kRecordVersion));
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
  return shards;
}

}  // namespace delayq::redis
