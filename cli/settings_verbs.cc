// For operators: settings get, set and unset.
#include <algorithm>
#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/terminal.h"
#include "cli/verb.h"
#include "core/text.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

constexpr const char* kTopicOrDefaults = "The topic; '*' for the defaults of all topics";

class SettingsGet final : public Verb {
 public:
  std::string_view name() const override { return "settings get"; }
  std::string_view help() const override { return "Show the settings of a topic"; }
  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topic_, kTopicOrDefaults)->required();
    app.add_option("SETTING", names_, "Only these settings");
    app.add_flag("--own", own_, "Only what is set for this topic itself; else what is in force");
  }

  Status run(const Session& session) override {
    Words command{"SETTINGS", "GET", topic_};
    if (own_) command.emplace_back("OWN");
    command.insert(command.end(), names_.begin(), names_.end());
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return reply.error();
    if (session.json) return show_map(session, *reply) ? Status{} : unexpected_reply();
    if (reply->items.size() % 2 != 0) return unexpected_reply();
    if (reply->items.empty()) session.world.out << "nothing is set: the defaults hold\n";
    size_t width = 0;
    for (size_t i = 0; i < reply->items.size(); i += 2) width = std::max(width, reply->items[i].text.size());
    for (size_t i = 0; i < reply->items.size(); i += 2) {
      const resp::Value& name = reply->items[i];
      session.world.out << fmt::format("{:<{}}  {}\n", printable(name.text, kShownCell), width,
                                       shown(name.text, reply->items[i + 1]));
    }
    return {};
  }

 private:
  /// As `settings set` reads it.
  static std::string shown(std::string_view name, const resp::Value& value) {
    constexpr size_t kShownSetting = 2'000;
    if (value.type != resp::Value::Type::kInteger) return printable(value.text, kShownSetting);
    if (name == "paused") return value.integer != 0 ? "true" : "false";
    return std::to_string(value.integer);
  }

  std::string topic_;
  std::vector<std::string> names_;
  bool own_ = false;
};

class SettingsSet final : public Verb {
 public:
  std::string_view name() const override { return "settings set"; }
  std::string_view help() const override { return "Change settings of a topic"; }
  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topic_, kTopicOrDefaults)->required();
    app.add_option("SETTING", words_,
                   "Each setting, and behind it its value; - reads the value from standard input, so that "
                   "a secret is not on the command line")
        ->type_name("VALUE")
        ->required();
    app.footer(
        "Examples:\n"
        "  delayq settings set order attempts 5 backoff 10s,1m,10m rate 100/1s\n"
        "  delayq settings set order keep_done.time 1d keep_done.count 5000\n"
        "  delayq settings set '*' lease 2m\n"
        "  delayq settings set order callback_secrets - < secret\n"
        "All settings: delayq settings get '*', and the configuration reference under [topics.NAME].");
  }

  Status run(const Session& session) override {
    split_pairs();
    if (words_.size() % 2 != 0)
      return invalid(fmt::format("{}: a value is missing behind it", quote(words_.back())));
    Words command{"SETTINGS", "SET", topic_};
    for (size_t i = 0; i < words_.size(); i += 2) {
      const bool is_piped = words_[i + 1] == "-";
      if (is_piped && session.world.in_is_terminal)
        return invalid(fmt::format("{}: pipe the value in", words_[i]));
      Result<std::string> value = is_piped ? read_body(session.world.in) : words_[i + 1];
      if (!value) return value.error();
      if (is_piped && value->ends_with('\n')) value->pop_back();
      command.push_back(words_[i]);
      command.push_back(std::move(*value));
    }
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return reply.error();
    session.say("set", json::Object().text("result", "ok").finish());
    return {};
  }

 private:
  /// "attempts=5" is "attempts" "5": no name of a setting has such a sign.
  void split_pairs() {
    for (size_t i = 0; i < words_.size(); i += 2) {
      const size_t sign = words_[i].find('=');
      if (sign == std::string::npos) continue;
      const auto value = words_.begin() + static_cast<ptrdiff_t>(i) + 1;
      words_.insert(value, words_[i].substr(sign + 1));
      words_[i].resize(sign);
    }
  }

  std::string topic_;
  std::vector<std::string> words_;
};

class SettingsUnset final : public Verb {
 public:
  std::string_view name() const override { return "settings unset"; }
  std::string_view help() const override { return "Remove settings of a topic, so that the defaults hold"; }
  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topic_, kTopicOrDefaults)->required();
    CLI::Option* const names = app.add_option("SETTING", names_, "These settings");
    app.add_flag("--all", all_, "All settings of the topic")->excludes(names);
  }

  Status run(const Session& session) override {
    if (names_.empty() && !all_) return invalid("SETTING is needed: name the settings, or use --all");
    Words command{"SETTINGS", "UNSET", topic_};
    command.insert(command.end(), names_.begin(), names_.end());
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return reply.error();
    session.say("removed: the defaults hold", json::Object().text("result", "ok").finish());
    return {};
  }

 private:
  std::string topic_;
  std::vector<std::string> names_;
  bool all_ = false;
};

}  // namespace

void add_settings_verbs(Verbs& verbs) {
  verbs.push_back(std::make_unique<SettingsGet>());
  verbs.push_back(std::make_unique<SettingsSet>());
  verbs.push_back(std::make_unique<SettingsUnset>());
}

}  // namespace delayq::cli
