// For operators: topics, stats, dead, redrive, pause, resume.
#include <algorithm>
#include <array>
#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/terminal.h"
#include "cli/verb.h"
#include "core/limits.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

using Text = std::optional<std::string>;
constexpr size_t kShownCell = 120;

/// A page of a listing: [cursor, rows].
bool is_page(const resp::Value& reply) {
  return reply.type == resp::Value::Type::kArray && reply.items.size() == 2 &&
         reply.items[1].type == resp::Value::Type::kArray;
}

class Topics final : public Verb {
 public:
  std::string_view name() const override { return "topics"; }
  std::string_view help() const override { return "List the topics with what is in them"; }
  void add_options(CLI::App&) override {}

  Status run(const Session& session) override {
    Table table;
    table.row({"TOPIC", "DELAYED", "READY", "RESERVED", "DONE", "DEAD", "PAUSED"});
    Words command{"TOPICS"};
    for (;;) {
      const Result<resp::Value> reply = session.ask(command);
      if (!reply) return reply.error();
      if (!is_page(*reply)) return unexpected_reply();
      for (const resp::Value& row : reply->items[1].items) {
        if (!show(session, row, table)) return unexpected_reply();
      }
      const std::string& cursor = reply->items[0].text;
      if (cursor.empty()) break;
      command = {"TOPICS", cursor};
    }
    if (!session.json) session.world.out << table.text();
    return {};
  }

 private:
  static bool show(const Session& session, const resp::Value& row, Table& table) {
    static constexpr std::array<std::string_view, 6> kColumns{"delayed", "ready", "reserved",
                                                              "done",    "dead",  "paused"};
    if (row.items.size() != kColumns.size() + 1) return false;
    json::Object object;
    object.text("topic", row.items[0].text);
    std::vector<std::string> cells{printable(row.items[0].text, kShownCell)};
    for (size_t i = 0; i < kColumns.size(); ++i) {
      const std::optional<int64_t> number = number_in(row.items[i + 1]);
      if (!number) return false;
      const bool paused = kColumns[i] == "paused";
      cells.push_back(paused ? (*number != 0 ? "yes" : "no") : grouped(*number));
      paused ? object.boolean(kColumns[i], *number != 0) : object.number(kColumns[i], *number);
    }
    if (session.json) {
      session.say({}, object.finish());
    } else {
      table.row(std::move(cells));
    }
    return true;
  }
};

class Stats final : public Verb {
 public:
  std::string_view name() const override { return "stats"; }
  std::string_view help() const override { return "Numbers of the server, or of one topic"; }
  void add_options(CLI::App& app) override { app.add_option("TOPIC", topic_, "Only of this topic"); }

  Status run(const Session& session) override {
    Words command{"STATS"};
    if (topic_) command.push_back(*topic_);
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return reply.error();
    return show_map(session, *reply) ? Status{} : unexpected_reply();
  }

 private:
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
    app.add_option("ID", ids_, "Only these jobs");
  }

  Status run(const Session& session) override {
    Words command{"REDRIVE", topic_};
    if (!ids_.empty()) command.emplace_back("ID");
    command.insert(command.end(), ids_.begin(), ids_.end());
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return reply.error();
    const std::optional<int64_t> count = number_in(*reply);
    if (!count) return unexpected_reply();
    session.say(fmt::format("{} ready again", grouped(*count)),
                json::Object().number("redriven", *count).finish());
    return {};
  }

 private:
  std::string topic_;
  std::vector<std::string> ids_;
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
    session.say(pause_ ? "paused" : "resumed", json::Object().boolean("ok", true).finish());
    return {};
  }

 private:
  bool pause_;
  std::string topic_;
};

}  // namespace

void add_operator_verbs(Verbs& verbs) {
  verbs.push_back(std::make_unique<Topics>());
  verbs.push_back(std::make_unique<Stats>());
  verbs.push_back(std::make_unique<Dead>());
  verbs.push_back(std::make_unique<Redrive>());
  verbs.push_back(std::make_unique<PauseOrResume>(true));
  verbs.push_back(std::make_unique<PauseOrResume>(false));
}

}  // namespace delayq::cli
