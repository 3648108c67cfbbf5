#include "engine/redis/lease.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "core/encoding.h"
#include "core/limits.h"

namespace delayq::redis {

namespace {

constexpr size_t kRankBytes = 20;

std::optional<uint64_t> read_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Removes and returns the part before the next dot.
std::string_view take_part(std::string_view& text) {
  const size_t dot = text.find('.');
  const std::string_view part = text.substr(0, dot);
  text = dot == std::string_view::npos ? std::string_view{} : text.substr(dot + 1);
  return part;
}

/// Whether a script can continue at this place. It would fail with any other value.
bool is_place(JobState state, const std::vector<std::string>& place) {
  if (place.empty()) return true;
  switch (state) {
    case JobState::kDelayed:
      return place.size() == 3 && read_number(place[0]) && (place[1].empty() || read_number(place[1])) &&
             place[2].size() <= Limits::kIdBytes;
    case JobState::kReady:
      return place.size() == 2 && (place[0] == "0" || place[0] == "1") && place[1].size() > kRankBytes &&
             place[1].size() <= kRankBytes + Limits::kIdBytes;
    default:
      return place.size() == 1 && read_number(place[0]).has_value();
  }
}

}  // namespace

std::string write_cursor(JobState state, const ListCursor& cursor) {
  std::string text = fmt::format("{}.{}", static_cast<int>(state), cursor.shard);
  for (const std::string& word : cursor.place) text += "." + to_hex(word);
  return text;
}

std::optional<ListCursor> read_cursor(std::string_view text, JobState state, uint32_t shards) {
  // A dot at the end is followed by an empty word, which counts.
  std::string_view rest = text;
  const std::optional<uint64_t> listed = read_number(take_part(rest));
  const std::optional<uint64_t> shard = read_number(take_part(rest));
  if (!listed || *listed != static_cast<uint64_t>(state) || !shard || *shard >= shards) return std::nullopt;
  ListCursor cursor{static_cast<uint32_t>(*shard), {}};
  const size_t words = state == JobState::kDelayed ? 3 : state == JobState::kReady ? 2 : 1;
  for (size_t i = 0; i < words && (i > 0 || !rest.empty()); ++i) {
    const std::optional<std::string> word = from_hex(take_part(rest));
    if (!word) return std::nullopt;
    cursor.place.push_back(*word);
  }
  // Only the exact text is accepted.
  if (!is_place(state, cursor.place) || write_cursor(state, cursor) != text) return std::nullopt;
  return cursor;
}

std::string write_group_cursor(std::span<const uint32_t> shards, const GroupCursor& places) {
  std::string text;
  for (const uint32_t shard : shards) {
    const auto place = places.find(shard);
    if (!text.empty()) text += ',';
    text += fmt::format("{}:{}", shard, place == places.end() ? "0" : place->second);
  }
  return text;
}

std::optional<GroupCursor> read_group_cursor(std::string_view text, uint32_t shards) {
  GroupCursor places;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const size_t colon = std::min(item.find(':'), item.size());
    const std::optional<uint64_t> shard = read_number(item.substr(0, colon));
    const std::optional<uint64_t> place = read_number(item.substr(std::min(colon + 1, item.size())));
    if (!shard || *shard >= shards || !place) return std::nullopt;
    places[static_cast<uint32_t>(*shard)] = std::to_string(*place);
  }
  return places;
}

}  // namespace delayq::redis
