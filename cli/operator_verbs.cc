// For operators: topics, stats, dead, redrive, purge, consumers, pause, resume.
#include <algorithm>
#include <array>
#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/terminal.h"
#include "cli/verb.h"
#include "core/limits.h"
#include "core/moment.h"
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
    const Result<resp::Value> reply = session.ask({"FORGET", topic_});
    if (!reply && reply.error().code == ErrorCode::kConflict) return explain(session, reply.error());
    if (!reply) return reply.error();
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
    error.detail = fmt::format("topic {0} has jobs: {1}. To remove these: delayq purge {0}",
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

class Consumers final : public Verb {
 public:
  std::string_view name() const override { return "consumers"; }
  std::string_view help() const override { return "Who waits for jobs, and which jobs are with consumers"; }
  void add_options(CLI::App& app) override {
    app.add_option("--count", count_, "The maximum number of each; default 100")
        ->check(CLI::Range(1U, Limits::kPageJobs));
  }

  Status run(const Session& session) override {
    const Result<resp::Value> clients = session.ask({"CONSUMERS", "COUNT", std::to_string(count_)});
    // A token for some topics sees the leases of these.
    const bool sees_clients = clients || clients.error().code != ErrorCode::kForbidden;
    if (!clients && sees_clients) return clients.error();
    if (clients && clients->find("waiting") == nullptr) return unexpected_reply();
    Leases leases;
    if (Status status = find_leases(session, leases); !status) return status;
    if (session.json) {
      show_as_json(session, clients, leases);
      return {};
    }
    if (clients) {
      show_clients(session, *clients);
    } else {
      session.world.out << fmt::format("who waits is not shown: {}\n", clients.error().detail);
    }
    show_leases(session, leases);
    return {};
  }

 private:
  struct Leases {
    int64_t total = 0;
    std::vector<resp::Value> jobs;
  };

  /// The first reserved jobs of each topic, as many as are shown in all.
  Status find_leases(const Session& session, Leases& leases) const {
    constexpr std::string_view kPage = "1000";
    Words command{"TOPICS", "", std::string(kPage)};
    for (;;) {
      const Result<resp::Value> reply = session.ask(command);
      if (!reply) return reply.error();
      if (!is_page(*reply)) return unexpected_reply();
      for (const resp::Value& row : reply->items[1].items) {
        if (row.items.size() < 4) return unexpected_reply();
        const int64_t reserved = number_in(row.items[3]).value_or(0);
        leases.total += reserved;
        if (reserved == 0 || leases.jobs.size() >= count_) continue;
        const Result<resp::Value> page = session.ask(
            {"LIST", row.items[0].text, "reserved", "COUNT", std::to_string(count_ - leases.jobs.size())});
        if (!page) return page.error();
        if (!is_page(*page)) return unexpected_reply();
        leases.jobs.insert(leases.jobs.end(), page->items[1].items.begin(), page->items[1].items.end());
      }
      const std::string& cursor = reply->items[0].text;
      if (cursor.empty()) break;
      command[1] = cursor;
    }
    // Those that are with their consumer for the longest time first, as far as is known.
    std::stable_sort(leases.jobs.begin(), leases.jobs.end(), [](const resp::Value& a, const resp::Value& b) {
      return number_of(a, "due_ms") < number_of(b, "due_ms");
    });
    return {};
  }

  static std::string moment_of(const resp::Value& map, std::string_view field) {
    return format_moment(from_unix_ms(number_of(map, field)));
  }

  static void show_as_json(const Session& session, const Result<resp::Value>& clients, const Leases& leases) {
    std::string out;
    json::Writer json(out);
    json.begin_object();
    if (clients) {
      json.key("connections").number(number_of(*clients, "connections"));
      json.key("waiting_total").number(number_of(*clients, "waiting_total")).key("waiting").begin_array();
      for (const resp::Value& pop : clients->find("waiting")->items) {
        json.begin_object()
            .bytes("client", field_text(pop, "client"))
            .key("protocol")
            .text(field_text(pop, "protocol"));
        if (pop.find("token") != nullptr) json.bytes("token", field_text(pop, "token"));
        json.key("topics").begin_array();
        for (const std::string& topic : field_texts(pop, "topics")) json.text(topic);
        json.end_array().key("since").text(moment_of(pop, "since_ms"));
        json.key("until").text(moment_of(pop, "until_ms")).end_object();
      }
      json.end_array();
    }
    json.key("leases_total").number(leases.total).end_object();
    out.pop_back();
    out += ",\"leases\":[";
    for (size_t i = 0; i < leases.jobs.size(); ++i) out += (i > 0 ? "," : "") + map_as_json(leases.jobs[i]);
    session.say_json(out + "]}");
  }

  static void show_clients(const Session& session, const resp::Value& clients) {
    const std::vector<resp::Value>& pops = clients.find("waiting")->items;
    const int64_t waiting = number_of(clients, "waiting_total");
    session.world.out << fmt::format("connections: {} (this one included), waiting pops: {}\n",
                                     grouped(number_of(clients, "connections")), grouped(waiting));
    if (pops.empty()) return;
    Table table;
    table.row({"CLIENT", "PROTOCOL", "TOKEN", "WAITS SINCE", "GIVES UP", "TOPICS"});
    for (const resp::Value& pop : pops) {
      std::string topics;
      for (const std::string& topic : field_texts(pop, "topics"))
        topics += (topics.empty() ? "" : " ") + topic;
      table.row({printable(field_text(pop, "client"), kShownCell),
                 printable(field_text(pop, "protocol"), kShownCell),
                 printable(field_text(pop, "token"), kShownCell), session.when(number_of(pop, "since_ms")),
                 session.when(number_of(pop, "until_ms")), printable(topics, kShownCell)});
    }
    session.world.out << table.text();
    if (static_cast<int64_t>(pops.size()) < waiting) session.world.out << "and more: see --count\n";
  }

  static void show_leases(const Session& session, const Leases& leases) {
    session.world.out << fmt::format("leases held: {}\n", grouped(leases.total));
    if (leases.jobs.empty()) return;
    Table table;
    table.row({"TOPIC", "ID", "ATTEMPT", "DUE", "LEASE ENDS"});
    for (const resp::Value& job : leases.jobs) {
      table.row({printable(field_text(job, "topic"), kShownTopic),
                 printable(field_text(job, "id"), kShownCell), grouped(number_of(job, "attempts")),
                 session.when(number_of(job, "due_ms")), session.when(number_of(job, "until_ms"))});
    }
    session.world.out << table.text();
    if (static_cast<int64_t>(leases.jobs.size()) < leases.total)
      session.world.out << "and more: see --count\n";
  }

  uint32_t count_ = 100;
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
  verbs.push_back(std::make_unique<Consumers>());
  verbs.push_back(std::make_unique<PauseOrResume>(true));
  verbs.push_back(std::make_unique<PauseOrResume>(false));
}

}  // namespace delayq::cli
