#include "cli/show.h"

#include <algorithm>
#include <array>
#include <ostream>

#include <fmt/format.h>

#include "cli/terminal.h"
#include "core/duration.h"
#include "core/moment.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

constexpr size_t kShownValue = 2'000;
constexpr std::array<std::string_view, 8> kTexts{"topic", "id",      "state",    "body",
                                                 "group", "outcome", "callback", "name"};
constexpr std::array<std::string_view, 3> kBooleans{"paused", "cancel_requested", "from_configuration"};

template <size_t kSize>
bool is_one_of(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_map(const resp::Value& value) {
  const bool listed = value.type == resp::Value::Type::kMap || value.type == resp::Value::Type::kArray;
  return listed && value.items.size() % 2 == 0;
}

/// "due_ms" is a moment, "lateness_p50_ms" a length of time.
std::string human_number(const Session& session, std::string_view name, int64_t number) {
  if (is_one_of(kBooleans, name)) return number != 0 ? "yes" : "no";
  if (name.starts_with("lateness")) return format_duration(Millis{number});
  if (name.ends_with("_ms")) {
    return fmt::format("{}, {}", format_moment(from_unix_ms(number)), session.when(number));
  }
  if (name.ends_with("_bytes") || name == "disk_free") return rough_size(number);
  return grouped(number);
}

/// The unit is in the value that a person reads.
std::string human_name(std::string_view name) {
  if (name.ends_with("_ms")) name.remove_suffix(3);
  if (name.ends_with("_bytes")) name.remove_suffix(6);
  std::string words(name);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

}  // namespace

bool show_map(const Session& session, const resp::Value& map) {
  if (!is_map(map)) return false;
  if (session.json) {
    session.say_json(map_as_json(map));
    return true;
  }
  size_t width = 0;
  for (size_t i = 0; i < map.items.size(); i += 2) {
    width = std::max(width, human_name(map.items[i].text).size());
  }
  for (size_t i = 0; i < map.items.size(); i += 2) {
    const std::string& name = map.items[i].text;
    const resp::Value& value = map.items[i + 1];
    const std::optional<int64_t> number = is_one_of(kTexts, name) ? std::nullopt : number_in(value);
    session.world.out << fmt::format(
        "{:<{}}  {}\n", human_name(name), width,
        number ? human_number(session, name, *number) : printable(value.text, kShownValue));
  }
  return true;
}

std::string map_as_json(const resp::Value& map) {
  json::Object object;
  if (!is_map(map)) return object.finish();
  for (size_t i = 0; i < map.items.size(); i += 2) {
    const std::string& name = map.items[i].text;
    const resp::Value& value = map.items[i + 1];
    const std::optional<int64_t> number = is_one_of(kTexts, name) ? std::nullopt : number_in(value);
    if (!number) {
      object.text(name, value.text);
    } else if (is_one_of(kBooleans, name)) {
      object.boolean(name, *number != 0);
    } else {
      object.number(name, *number);
    }
  }
  return object.finish();
}

Result<std::map<std::string, TopicCounts>> count_topics(const Ask& ask) {
  std::map<std::string, TopicCounts> topics;
  Words command{"TOPICS"};
  for (;;) {
    const Result<resp::Value> reply = ask(command);
    if (!reply) return reply.error();
    if (reply->items.size() != 2) return unexpected_reply();
    for (const resp::Value& row : reply->items[1].items) {
      if (row.items.size() <= TopicCounts::kStates.size()) return unexpected_reply();
      TopicCounts& counts = topics[row.items[0].text];
      for (size_t i = 0; i < counts.states.size(); ++i)
        counts.states[i] = static_cast<uint64_t>(number_in(row.items[i + 1]).value_or(0));
    }
    const std::string& cursor = reply->items[0].text;
    if (cursor.empty()) return topics;
    command = {"TOPICS", cursor};
  }
}

}  // namespace delayq::cli
