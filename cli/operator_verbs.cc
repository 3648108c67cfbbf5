// For operators: topics, stats, dead, redrive, purge, pause, resume.
#include <algorithm>
#include <array>
#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/terminal.h"
#include "cli/verb.h"
#include "core/limits.h"
#include "core/text.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

using Text = std::optional<std::string>;

class Topics final : public Verb {
 public:
  std::string_view name() const override { return "topics"; }
  std::string_view help() const override { return "List the topics with what is in them"; }
  void add_options(CLI::App&) override {}

  Status run(const Session& session) override {
    Table table;
    table.row({"TOPIC", "DELAYED", "READY", "RESERVED", "DONE", "DEAD", "PAUSED"});
    Words command = page_after(session, "");
    for (;;) {
      const Result<resp::Value> reply = session.ask(command);
      if (!reply) return reply.error();
      if (!is_page(*reply)) return unexpected_reply();
      for (const resp::Value& row : reply->items[1].items) {
        if (!show(session, row, table)) return unexpected_reply();
      }
      const std::string& cursor = reply->items[0].text;
      if (cursor.empty()) break;
      command = page_after(session, cursor);
    }
    if (!session.json) session.world.out << table.text();
    return {};
  }

 private:
  static Words page_after(const Session& session, const std::string& cursor) {
    if (session.json) return {"TOPICS", cursor, "100", "FIELDS"};
    return cursor.empty() ? Words{"TOPICS"} : Words{"TOPICS", cursor};
  }

  static bool show(const Session& session, const resp::Value& row, Table& table) {
    if (session.json) {
      if (row.find("topic") == nullptr) return false;
      session.say_json(map_as_json(row));
      return true;
    }
    static constexpr std::array<std::string_view, 6> kColumns{"delayed", "ready", "reserved",
                                                              "done",    "dead",  "paused"};
    if (row.items.size() != kColumns.size() + 1) return false;
    std::vector<std::string> cells{printable(row.items[0].text, kShownCell)};
    for (size_t i = 0; i < kColumns.size(); ++i) {
      const std::optional<int64_t> number = number_in(row.items[i + 1]);
      if (!number) return false;
      const bool paused = kColumns[i] == "paused";
      cells.push_back(paused ? (*number != 0 ? "yes" : "no") : grouped(*number));
    }
    table.row(std::move(cells));
    return true;
  }
};

class Stats final : public Verb {
 public:
  std::string_view name() const override { return "stats"; }
  std::string_view help() const override { return "Numbers of the server, or of one topic"; }
  void add_options(CLI::App& app) override { app.add_option("TOPIC", topic_, "Only of this topic"); }

  Status run(const Session& session) override {
    if (topic_ && session.json) return show_topic_as_json(session);
    Words command{"STATS"};
    if (topic_) command.push_back(*topic_);
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return reply.error();
    return show_map(session, *reply) ? Status{} : unexpected_reply();
  }

 private:
  /// With its settings, as HTTP has it.
  Status show_topic_as_json(const Session& session) const {
    const std::vector<Words> commands{{"STATS", *topic_}, {"SETTINGS", "GET", *topic_}};
    Result<std::vector<resp::Value>> replies = session.ask_all(commands);
    if (!replies) return replies.error();
    for (const resp::Value& reply : *replies) {
      if (reply.is_error()) return error_of_reply(reply.text);
    }
    resp::Value& stats = (*replies)[0];
    if (stats.find("ready") == nullptr) return unexpected_reply();
    add_field(stats, "topic", *topic_);
    std::string line = map_as_json(stats);
    line.pop_back();
    session.say_json(fmt::format("{},\"settings\":{}}}", line, map_as_json((*replies)[1])));
    return {};
  }

  Text topic_;
};

class Dead final : public Verb {
 public:
  std::string_view name() const override { return "dead"; }
  std::string_view help() const override { return "List the dead jobs of a topic with their last errors"; }
  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topic_, "The topic")->required();
    app.add_option("--prefix", prefix_, "Only ids that start with this");
    app.add_option("--error", error_, "Only errors that contain this");
    app.add_option("--count", count_, "The maximum number; default 100")
        ->check(CLI::Range(1U, 1'000'000'000U));
  }

  Status run(const Session& session) override {
    Table table;
    table.row({"ID", "ATTEMPTS", "DUE", "ERROR"});
    std::string cursor;
    uint64_t left = count_;
    do {
      const Result<resp::Value> reply = session.ask(page_of(cursor, left));
      if (!reply) return reply.error();
      if (!is_page(*reply)) return unexpected_reply();
      for (const resp::Value& job : reply->items[1].items) {
        if (!show(session, job, table)) return unexpected_reply();
        left -= left > 0 ? 1 : 0;
      }
      cursor = reply->items[0].text;
    } while (!cursor.empty() && left > 0);
    if (session.json) return {};
    session.world.out << table.text();
    if (!cursor.empty()) session.world.out << "and more: see --count\n";
    return {};
  }

 private:
  Words page_of(const std::string& cursor, uint64_t left) const {
    Words command{"LIST", topic_, "dead"};
    append_option(command, "PREFIX", prefix_);
    append_option(command, "ERROR", error_);
    append_option(command, "COUNT", std::to_string(std::min<uint64_t>(left, Limits::kPageJobs)));
    if (!cursor.empty()) append_option(command, "CURSOR", cursor);
    return command;
  }

  static bool show(const Session& session, const resp::Value& job, Table& table) {
    const resp::Value* const id = job.find("id");
    if (id == nullptr) return false;
    if (session.json) {
      session.say({}, map_as_json(job));
      return true;
    }
    const resp::Value* const attempts = job.find("attempts");
    const resp::Value* const due = job.find("due_ms");
    const resp::Value* const outcome = job.find("outcome");
    table.row({printable(id->text, kShownCell),
               attempts != nullptr ? grouped(number_in(*attempts).value_or(0)) : "",
               due != nullptr ? session.when(number_in(*due).value_or(0)) : "",
               outcome != nullptr ? printable(outcome->text, kShownCell) : ""});
    return true;
  }

  std::string topic_;
  Text prefix_, error_;
  uint64_t count_ = 100;
};

class Redrive final : public Verb {
 public:
  std::string_view name() const override { return "redrive"; }
  std::string_view help() const override { return "Make dead jobs ready again, all of a topic or some"; }
  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topic_, "The topic")->required();
    CLI::Option* const ids = app.add_option("ID", ids_, "Only these jobs");
    app.add_option("--error", error_, "Only jobs whose error contains this")
        ->type_name("TEXT")
        ->excludes(ids);
  }

  Status run(const Session& session) override {
    Words command{"REDRIVE", topic_};
    append_option(command, "ERROR", error_);
    if (!ids_.empty()) command.emplace_back("ID");
    command.insert(command.end(), ids_.begin(), ids_.end());
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return reply.error();
    const std::optional<int64_t> count = number_in(*reply);
    if (!count) return unexpected_reply();
    session.say(fmt::format("{} ready again", grouped(*count)),
                json::Object().number("jobs", *count).finish());
    return {};
  }

 private:
  std::string topic_;
  std::vector<std::string> ids_;
  Text error_;
};

class TopicsRm final : public Verb {
 public:
  std::string_view name() const override { return "topics rm"; }
  std::string_view help() const override {
    return "Remove the settings and figures of a topic that has no jobs";
  }
  void add_options(CLI::App& app) override { app.add_option("TOPIC", topic_, "The topic")->required(); }

  Status run(const Session& session) override {
    const Result<resp::Value> reply = session.ask({"FORGET", topic_, "FIELDS"});
    if (!reply && reply.error().code == ErrorCode::kConflict) return explain(session, reply.error());
    if (!reply) return reply.error();
    if (reply->find("existed") == nullptr) return unexpected_reply();
    if (number_of(*reply, "existed") == 0)
      return Error{ErrorCode::kNotFound, {}, fmt::format("there is no topic {}", quote(topic_))};
    session.say(fmt::format("{} has no jobs, settings and figures any more", printable(topic_, kShownTopic)),
                json::Object().text("result", "ok").finish());
    return {};
  }

 private:
  /// What is in the topic, and how to remove it.
  Error explain(const Session& session, Error error) const {
    const Result<resp::Value> stats = session.ask({"STATS", topic_});
    const std::string counts = stats ? shown_counts(*stats) : std::string();
    if (counts.empty()) return error;
    error.detail = fmt::format("there are jobs in topic {0}: {1}. To remove these: delayq purge {0}",
                               printable(topic_, kShownTopic), counts);
    return error;
  }

  std::string topic_;
};

class Purge final : public Verb {
 public:
  std::string_view name() const override { return "purge"; }
  std::string_view help() const override { return "Delete the jobs of a topic, all or those in some states"; }
  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topic_, "The topic")->required();
    app.add_option("--state", states_, "Only jobs in these states: dead, or done,dead")
        ->delimiter(',')
        ->check(CLI::IsMember(job_state_names()));
    app.add_flag("--yes", yes_, "Do not ask; needed without a terminal");
    app.footer("Examples:\n  delayq purge order --state done,dead\n  delayq purge order --yes");
  }

  Status run(const Session& session) override {
    const Result<resp::Value> stats = session.ask({"STATS", topic_});
    if (!stats) return stats.error();
    const std::string topic = printable(topic_, kShownTopic);
    const std::string counts = shown_counts(*stats, states_);
    if (counts.empty()) {
      session.say(fmt::format("nothing to delete in {}", topic), json::Object().number("jobs", 0).finish());
      return {};
    }
    if (!yes_) {
      const bool holds = counts.find("reserved") != std::string::npos;
      const std::string what = fmt::format("{} of topic {}{}", counts, topic,
                                           holds ? " (the reserved ones are with consumers)" : "");
      if (!session.world.in_is_terminal || !session.world.err_is_terminal)
        return invalid(fmt::format("would delete {}. Say --yes if that is meant", what));
      session.world.err << fmt::format("Delete {}? [y/N] ", what) << std::flush;
      std::string answer;
      std::getline(session.world.in, answer);
      if (answer != "y" && answer != "Y" && answer != "yes") {
        session.world.err << "nothing was deleted\n";
        return {};
      }
    }
    return purge(session);
  }

 private:
  Status purge(const Session& session) const {
    int64_t deleted = 0;
    std::vector<Words> commands;
    for (const std::string& state : states_) commands.push_back({"PURGE", topic_, state});
    if (commands.empty()) commands.push_back({"PURGE", topic_});
    for (const Words& command : commands) {
      const Result<resp::Value> reply = session.ask(command, kPurgePatience);
      const std::optional<int64_t> count = reply ? number_in(*reply) : std::nullopt;
      if (!count) {
        Error error = reply ? unexpected_reply() : reply.error();
        if (deleted > 0) error.detail += fmt::format("; {} were deleted before that", grouped(deleted));
        return error;
      }
      deleted += *count;
    }
    session.say(fmt::format("{} deleted", grouped(deleted)), json::Object().number("jobs", deleted).finish());
    return {};
  }

  static constexpr Millis kPurgePatience = std::chrono::minutes{10};

  std::string topic_;
  std::vector<std::string> states_;
  bool yes_ = false;
};

class PauseOrResume final : public Verb {
 public:
  explicit PauseOrResume(bool pause) : pause_(pause) {}
  std::string_view name() const override { return pause_ ? "pause" : "resume"; }
  std::string_view help() const override {
    return pause_ ? "Stop the hand-over of a topic until it is resumed" : "Resume the hand-over of a topic";
  }
  void add_options(CLI::App& app) override { app.add_option("TOPIC", topic_, "The topic")->required(); }

  Status run(const Session& session) override {
    const Result<resp::Value> reply = session.ask({pause_ ? "PAUSE" : "RESUME", topic_});
    if (!reply) return reply.error();
    session.say(pause_ ? "paused" : "resumed", json::Object().text("result", "ok").finish());
    return {};
  }

 private:
  bool pause_;
  std::string topic_;
};

}  // namespace

void add_operator_verbs(Verbs& verbs) {
  verbs.push_back(std::make_unique<Topics>());
  verbs.push_back(std::make_unique<TopicsRm>());
  verbs.push_back(std::make_unique<Stats>());
  verbs.push_back(std::make_unique<Dead>());
  verbs.push_back(std::make_unique<Redrive>());
  verbs.push_back(std::make_unique<Purge>());
  verbs.push_back(std::make_unique<PauseOrResume>(true));
  verbs.push_back(std::make_unique<PauseOrResume>(false));
}

}  // namespace delayq::cli
