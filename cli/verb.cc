#include "cli/verb.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <istream>
#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/terminal.h"
#include "core/duration.h"
#include "core/job_state.h"
#include "core/limits.h"
#include "core/moment.h"
#include "json/reader.h"
#include "json/writer.h"

namespace delayq::cli {

CLI::App& add_subcommand(CLI::App& app, Verb& verb) {
  const std::string name(verb.name());
  const size_t space = name.find(' ');
  CLI::App* group = &app;
  if (space != std::string::npos) {
    const std::string first = name.substr(0, space);
    const auto found = app.get_subcommands([&](const CLI::App* each) { return each->get_name() == first; });
    group = found.empty() ? nullptr : found.front();
    if (group == nullptr) {
      group = app.add_subcommand(first, first == "schedule"
                                            ? "Recurring jobs: every so often, or by cron in a time zone"
                                            : "Look at the settings of a topic, and change them");
      group->require_subcommand(1);
    }
  }
  CLI::App* const command = group->add_subcommand(name.substr(space == std::string::npos ? 0 : space + 1),
                                                  std::string(verb.help()));
  verb.add_options(*command);
  return *command;
}

Result<resp::Value> Session::ask(const Words& command, Millis wait) const {
  return cli::ask(transport, command, wait);
}

Result<std::vector<resp::Value>> Session::ask_all(std::span<const Words> commands) const {
  return batch_transport(commands);
}

Result<resp::Value> ask(const Transport& transport, const Words& command, Millis wait) {
  Result<resp::Value> reply = transport(command, wait);
  if (reply && reply->is_error()) return error_of_reply(reply->text);
  return reply;
}

void Session::say(std::string_view human, std::string_view machine) const {
  if (json) return say_json(machine);
  world.out << human << "\n";
}

void Session::say_json(std::string_view line) const { world.out << printable_json(line) << "\n"; }

std::string Session::when(int64_t unix_ms) const { return relative(world.now(), from_unix_ms(unix_ms)); }

void append_option(Words& command, std::string_view word, const std::optional<std::string>& value) {
  if (!value) return;
  command.emplace_back(word);
  command.push_back(*value);
}

Error error_of_reply(std::string_view reply) {
  constexpr size_t kMostShown = 4'096;
  const std::string text = printable(reply, kMostShown);  // a terminal will show it
  const size_t space = text.find(' ');
  const std::string_view prefix = std::string_view(text).substr(0, space);
  const std::string_view rest =
      space == std::string::npos ? std::string_view() : std::string_view(text).substr(space + 1);
  for (const ErrorTraits& traits : kErrorTable) {
    if (traits.resp_prefix == prefix) return {traits.code, {}, std::string(rest)};
  }
  // Redis's own error for an unknown command.
  if (prefix == "ERR") return invalid(std::string(rest));
  return {ErrorCode::kInternal, {}, text};
}

Error unexpected_reply() {
  return {ErrorCode::kInternal, {}, "the reply is not from delayq: is this the right server?"};
}

std::optional<int64_t> number_in(const resp::Value& value) {
  if (value.type == resp::Value::Type::kInteger || value.type == resp::Value::Type::kBoolean) {
    return value.integer;
  }
  if (value.type != resp::Value::Type::kBulk) return std::nullopt;
  int64_t number = 0;
  const char* const end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

int64_t number_of(const resp::Value& map, std::string_view key) {
  const resp::Value* const value = map.find(key);
  return value == nullptr ? 0 : number_in(*value).value_or(0);
}

std::string_view field_text(const resp::Value& map, std::string_view key) {
  const resp::Value* const value = map.find(key);
  return value == nullptr ? std::string_view() : std::string_view(value->text);
}

std::vector<std::string> field_texts(const resp::Value& map, std::string_view key) {
  std::vector<std::string> texts;
  const resp::Value* const list = map.find(key);
  if (list == nullptr) return texts;
  for (const resp::Value& item : list->items) texts.push_back(item.text);
  return texts;
}

bool is_page(const resp::Value& reply) {
  return reply.type == resp::Value::Type::kArray && reply.items.size() == 2 &&
         reply.items[1].type == resp::Value::Type::kArray;
}

std::string shown_counts(const resp::Value& stats, std::span<const std::string> states) {
  std::string text;
  for (const std::string_view state : kJobStateNames) {
    const bool is_wanted = states.empty() || std::find(states.begin(), states.end(), state) != states.end();
    const int64_t count = is_wanted ? number_of(stats, state) : 0;
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(count), state);
  }
  return text;
}

std::vector<std::string> job_state_names() { return {kJobStateNames.begin(), kJobStateNames.end()}; }

void JobFlags::add_to(CLI::App& app) {
  app.add_option("--priority", priority_, "A lower number is handed out first; default 1024");
  app.add_option("--attempts", attempts_, "Tries before it is dead; 0: no limit");
  app.add_option("--backoff", backoff_, "30s, or 10s,1m,10m, or exponential:1s:2:1h:0.1");
  app.add_option("--lease", lease_, "How long a consumer may hold it");
  app.add_option("--group", group_, "The group, to cancel its jobs together");
  app.add_option("--callback", callback_, "Call this URL when the job is due; it is then never popped");
  app.add_option("--callback-method", method_, "POST, PUT, PATCH or DELETE; default the topic's");
  app.add_option("--callback-format", format_, "webhook, cloudevents or callback-api; default the topic's");
  app.add_option("--header", headers_, "A header of the job, for its consumer; may be given several times")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check([](const std::string& text) {
        return text.find('=') == std::string::npos ? "expected NAME=VALUE" : std::string();
      });
}

void JobFlags::append_to(Words& command) const {
  append_option(command, "PRI", priority_);
  append_option(command, "ATTEMPTS", attempts_);
  append_option(command, "BACKOFF", backoff_);
  append_option(command, "LEASE", lease_);
  append_option(command, "GROUP", group_);
  append_option(command, "CALLBACK", callback_);
  append_option(command, "METHOD", method_);
  append_option(command, "FORMAT", format_);
  for (const std::string& header : headers_) {
    const size_t sign = header.find('=');
    command.insert(command.end(), {"HEADER", header.substr(0, sign), header.substr(sign + 1)});
  }
}

Result<std::string> read_body(std::istream& in) {
  std::string body;
  std::string chunk(size_t{256} << 10, '\0');
  while (body.size() <= Limits::kMaxBodyBytes && in) {
    in.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    body.append(chunk, 0, static_cast<size_t>(in.gcount()));
  }
  if (in.bad()) return invalid("body: could not be read to its end");
  if (Status status = check_body(body.size(), Limits::kMaxBodyBytes); !status) return status.error();
  return body;
}

Result<std::string> read_body_file(const std::string& name) {
  std::ifstream in(name, std::ios::binary);
  if (!in || in.peek() == std::ifstream::traits_type::eof()) {
    if (!in.eof()) return invalid(fmt::format("--file: {} cannot be read", name));
    return std::string();
  }
  Result<std::string> body = read_body(in);
  if (!body) return Error{body.error().code, {}, fmt::format("{}: {}", name, body.error().detail)};
  return body;
}

Result<std::string> given_body(const Session& session, const std::string& given, std::string_view advice) {
  if (given != "-") return given;
  if (session.world.in_is_terminal) return invalid(fmt::format("body: is missing: {}", advice));
  return read_body(session.world.in);
}

namespace {

constexpr size_t kShownValue = 2'000;
constexpr std::array<std::string_view, 4> kBooleans{"paused", "cancel_requested", "from_configuration",
                                                    "moving"};

/// The field whose value is a map, and the one whose value is a list.
constexpr std::string_view kHeaders = "headers";
constexpr std::string_view kHeaderNames = "callback_header_names";

template <size_t kSize>
bool is_one_of(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_map(const resp::Value& value) {
  const bool listed = value.type == resp::Value::Type::kMap || value.type == resp::Value::Type::kArray;
  return listed && value.items.size() % 2 == 0;
}

bool is_length_of_time(std::string_view name) { return name.find("lateness") != std::string_view::npos; }

bool is_number(const resp::Value& value) {
  return value.type == resp::Value::Type::kInteger || value.type == resp::Value::Type::kBoolean;
}

std::string shown_list(const resp::Value& list) {
  std::string line;
  for (const resp::Value& item : list.items) line += (line.empty() ? "" : ", ") + item.text;
  return printable(line, kShownValue);
}

/// "due_ms" is a moment, "lateness_p50_ms" a length of time.
std::string human_number(const Session& session, std::string_view name, int64_t number) {
  if (is_one_of(kBooleans, name)) return number != 0 ? "yes" : "no";
  if (is_length_of_time(name)) return format_duration(Millis{number});
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
    const std::optional<NamedTexts> texts = name == kHeaders ? named_texts(value) : std::nullopt;
    if (texts) {
      session.world.out << fmt::format("{:<{}}  {}\n", name, width, shown_texts(*texts, kShownValue));
      continue;
    }
    const std::string shown = is_number(value)       ? human_number(session, name, value.integer)
                              : name == kHeaderNames ? shown_list(value)
                                                     : printable(value.text, kShownValue);
    session.world.out << fmt::format("{:<{}}  {}\n", human_name(name), width, shown);
  }
  return true;
}

std::optional<NamedTexts> named_texts(const resp::Value& map) {
  if (!is_map(map)) return std::nullopt;
  NamedTexts texts;
  for (size_t i = 0; i < map.items.size(); i += 2)
    texts.emplace_back(map.items[i].text, map.items[i + 1].text);
  return texts;
}

std::string named_texts_as_json(const NamedTexts& texts) {
  json::Object object;
  for (const auto& [name, value] : texts) object.text(name, value);
  return object.finish();
}

std::string shown_texts(const NamedTexts& texts, size_t most_bytes) {
  std::string line;
  for (const auto& [name, value] : texts) {
    if (!line.empty()) line += ", ";
    line.append(name).append("=").append(value);
  }
  return printable(line, most_bytes);
}

// ---- JSON, as HTTP writes it

namespace {

/// Fields that stand elsewhere in JSON. "a.b" is the member b of the object a.
constexpr std::array<std::pair<std::string_view, std::string_view>, 30> kPlaces{{
    {"delayed", "counts.delayed"},
    {"ready", "counts.ready"},
    {"reserved", "counts.reserved"},
    {"done", "counts.done"},
    {"dead", "counts.dead"},
    {"pushed", "since_start.pushed"},
    {"popped", "since_start.popped"},
    {"acked", "since_start.acked"},
    {"nacked", "since_start.nacked"},
    {"expired", "since_start.expired"},
    {"died", "since_start.died"},
    {"cancelled", "since_start.cancelled"},
    {"lateness_p50_ms", "lateness_ms.p50"},
    {"lateness_p99_ms", "lateness_ms.p99"},
    {"disk_free", "disk_free_bytes"},
    {"occurrences_made", "occurrences.made"},
    {"occurrences_skipped", "occurrences.skipped"},
    {"occurrences_missed", "occurrences.missed"},
    {"occurrences_refused", "occurrences.refused"},
    {"occurrences_lateness_p50_ms", "occurrences.lateness_ms.p50"},
    {"occurrences_lateness_p99_ms", "occurrences.lateness_ms.p99"},
    {"previous_ms", "previous.at"},
    {"previous_topic", "previous.topic"},
    {"previous_id", "previous.id"},
    {"start_ms", "start"},
    {"end_ms", "end"},
    {"lease_until_ms", "lease_until"},
    {"method", "callback_method"},
    {"format", "callback_format"},
    {"at_ms", "at"},
}};

/// Where a field stands in JSON.
std::string place_of(const resp::Value& map, std::string_view name) {
  const auto* const found =
      std::find_if(kPlaces.begin(), kPlaces.end(), [name](const auto& place) { return place.first == name; });
  if (found != kPlaces.end()) return std::string(found->second);
  if (name == "until_ms") {
    const resp::Value* const state = map.find("state");
    return state != nullptr && state->text == "reserved" ? "lease_until" : "kept_until";
  }
  if (!name.ends_with("_ms")) return std::string(name);
  return std::string(name.substr(0, name.size() - 3)) + "_at";
}

/// An object whose members are found by their places, and are written in the order in which they came.
class Tree {
 public:
  /// `write` appends the member to the object that it stands in.
  using Write = std::function<void(json::Writer& json, std::string_view name)>;

  void put(std::string_view place, Write write) {
    const size_t dot = place.find('.');
    if (dot == std::string_view::npos) {
      branches_.push_back({std::string(place), nullptr, std::move(write)});
      return;
    }
    auto found = std::find_if(branches_.begin(), branches_.end(), [&](const Branch& branch) {
      return branch.tree != nullptr && branch.name == place.substr(0, dot);
    });
    if (found == branches_.end())
      found = branches_.insert(branches_.end(),
                               {std::string(place.substr(0, dot)), std::make_unique<Tree>(), nullptr});
    found->tree->put(place.substr(dot + 1), std::move(write));
  }

  void write(json::Writer& json) const {
    json.begin_object();
    for (const Branch& branch : branches_) {
      if (branch.tree == nullptr) {
        branch.write(json, branch.name);
      } else {
        json.key(branch.name);
        branch.tree->write(json);
      }
    }
    json.end_object();
  }

 private:
  struct Branch {
    std::string name;
    std::unique_ptr<Tree> tree;
    Write write;
  };
  std::vector<Branch> branches_;
};

void write_number(json::Writer& json, std::string_view field, std::string_view name, int64_t number) {
  json.key(name);
  if (is_one_of(kBooleans, field)) {
    json.boolean(number != 0);
  } else if (field.ends_with("_ms") && !is_length_of_time(field)) {
    json.text(format_moment(from_unix_ms(number)));
  } else {
    json.number(number);
  }
}

Tree::Write writer_of(const resp::Value& map, std::string_view field, const resp::Value& value) {
  if (field == kHeaders) {
    return [&value](json::Writer& json, std::string_view name) {
      if (const auto texts = named_texts(value)) json.key(name).raw(named_texts_as_json(*texts));
    };
  }
  if (field == kHeaderNames) {
    return [&value](json::Writer& json, std::string_view name) {
      json.key(name).begin_array();
      for (const resp::Value& item : value.items) json.text(item.text);
      json.end_array();
    };
  }
  if (is_number(value)) {
    return [field, number = value.integer](json::Writer& json, std::string_view name) {
      write_number(json, field, name, number);
    };
  }
  // A body of an unknown type is the JSON that it looks like.
  const bool may_be_json = field == "body" && map.find("content_type") == nullptr;
  return [&value, may_be_json](json::Writer& json, std::string_view name) {
    if (!may_be_json || !json::parse(value.text).ok()) {
      json.bytes(name, value.text);
      return;
    }
    std::string line = value.text;  // a JSON value has line ends only between its parts
    std::replace_if(
        line.begin(), line.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    json.key(name).raw(line);
  };
}

}  // namespace

std::string map_as_json(const resp::Value& map) {
  Tree tree;
  for (size_t i = 0; is_map(map) && i < map.items.size(); i += 2) {
    const std::string& field = map.items[i].text;
    const resp::Value& value = map.items[i + 1];
    if (field == kHeaders && value.items.empty()) continue;
    tree.put(place_of(map, field), writer_of(map, field, value));
  }
  std::string text;
  json::Writer json(text);
  tree.write(json);
  return text;
}

void add_field(resp::Value& map, std::string_view name, std::string_view text) {
  resp::Value key;
  key.type = resp::Value::Type::kBulk;
  key.text = name;
  resp::Value value = key;
  value.text = text;
  map.items.insert(map.items.begin(), {std::move(key), std::move(value)});
}

}  // namespace delayq::cli
