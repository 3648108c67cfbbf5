// Recurring jobs: schedule set, next, list, show, pause, resume, run, remove.
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

/// A name or a rule is cut to this many bytes in a table.
constexpr size_t kShownInTable = 80;
constexpr const char* kNameHelp = "The schedule";
constexpr const char* kCronHelp =
    "When: \"0 2 * * *\" (minute, hour, day, month, weekday), @hourly, @daily, ...";
constexpr const char* kZoneHelp = "The time zone of --cron: Europe/Berlin; default UTC";
constexpr const char* kEveryHelp = "When: each time after so much, from 10s on: 15m, 1d";

/// A field of a schedule on a terminal; empty if it has none.
std::string shown_field(const resp::Value& schedule, std::string_view name) {
  const resp::Value* const value = schedule.find(name);
  return value == nullptr ? std::string() : printable(value->text, kShownInTable);
}

/// "2026-11-17T02:00:00+08:00, in 3h12m"; empty when there is no next occurrence.
std::string shown_next(const Session& session, const resp::Value& schedule) {
  const resp::Value* const next = schedule.find("next_ms");
  const std::optional<int64_t> at = next == nullptr ? std::nullopt : number_in(*next);
  if (!at) return {};
  return fmt::format("{}, {}", shown_field(schedule, "next_local"), session.when(*at));
}

/// A reply with a schedule: a person gets `done` and what comes next.
Status tell_schedule(const Session& session, const resp::Value& reply, std::string_view done) {
  if (reply.find("name") == nullptr) return unexpected_reply();
  const std::string next = shown_next(session, reply);
  session.say(next.empty() ? fmt::format("{}: no occurrence to come", done)
                           : fmt::format("{}: next at {}", done, next),
              map_as_json(reply));
  return {};
}

Error no_such_schedule(std::string_view name) {
  return {ErrorCode::kNotFound, {}, fmt::format("there is no schedule {}", quote(name))};
}

class ScheduleSet final : public Verb {
 public:
  std::string_view name() const override { return "schedule set"; }
  std::string_view help() const override { return "Create a schedule, or change the one with this name"; }

  void add_options(CLI::App& app) override {
    app.add_option("NAME", name_, "Its name: letters, digits and _ . : -")->required();
    app.add_option("BODY", body_, "The body of its jobs; - or none: read from standard input");
    CLI::Option* const cron = app.add_option("--cron", cron_, kCronHelp)->type_name("RULE");
    app.add_option("--zone", zone_, kZoneHelp)->needs(cron);
    app.add_option("--every", every_, kEveryHelp)->type_name("DURATION")->excludes(cron);
    app.add_option("--topic", topic_, "The topic of its jobs")->required();
    app.add_option("--file", file_, "The body is in this file")->type_name("FILE");
    app.add_option("--start", start_,
                   "Nothing before: 2030-01-31T08:00:00Z or Unix seconds; --every counts from it");
    app.add_option("--end", end_, "Nothing after this moment");
    app.add_option("--runs", runs_, "How many jobs in all");
    app.add_option("--jitter", jitter_, "Each job is due up to so much later");
    app.add_option("--overlap", overlap_,
                   "If the job before is still there: make one, make none, or replace it")
        ->check(CLI::IsMember(std::vector<std::string>{"allow", "skip", "replace"}));
    app.add_option("--missed", missed_,
                   "Of those missed while no server ran: make the last one, none, or all")
        ->check(CLI::IsMember(std::vector<std::string>{"one", "skip", "all"}));
    flags_.add_to(app);
    app.footer(
        "Examples:\n"
        "  delayq schedule set nightly --cron \"0 2 * * *\" --zone Asia/Shanghai --topic report "
        "'{\"kind\":\"daily\"}'\n"
        "  delayq schedule set poll --every 15m --overlap skip --topic poll ''\n"
        "  delayq schedule set bills --cron \"0 6 L * *\" --topic bill --file bill.json --attempts 5");
  }

  Status run(const Session& session) override {
    if (!cron_ && !every_) return invalid("--cron or --every is needed: when are the jobs due?");
    if (body_ && file_) return invalid("--file: cannot be given together with a body");
    Result<std::string> body = file_ ? read_body_file(*file_)
                                     : given_body(session, body_.value_or("-"),
                                                  "give it after the name, name a --file, or pipe it in");
    if (!body) return body.error();
    Words command{"SCHEDULE", "SET", name_, "TOPIC", topic_, "BODY", std::move(*body)};
    append_option(command, "CRON", cron_);
    append_option(command, "ZONE", zone_);
    append_option(command, "EVERY", every_);
    append_option(command, "START", start_);
    append_option(command, "END", end_);
    append_option(command, "RUNS", runs_);
    append_option(command, "JITTER", jitter_);
    append_option(command, "OVERLAP", overlap_);
    append_option(command, "MISSED", missed_);
    flags_.append_to(command);
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return reply.error();
    return tell_schedule(session, *reply, shown_field(*reply, "result"));
  }

 private:
  std::string name_, topic_;
  Text body_, cron_, zone_, every_, file_, start_, end_, runs_, jitter_, overlap_, missed_;
  JobFlags flags_;
};

class ScheduleNext final : public Verb {
 public:
  std::string_view name() const override { return "schedule next"; }
  std::string_view help() const override { return "The next occurrences of a schedule, or of a rule"; }

  void add_options(CLI::App& app) override {
    CLI::Option* const name =
        app.add_option("NAME", name_, "The schedule; or give a rule, which is not stored");
    CLI::Option* const cron = app.add_option("--cron", cron_, kCronHelp)->type_name("RULE")->excludes(name);
    app.add_option("--zone", zone_, kZoneHelp)->needs(cron);
    app.add_option("--every", every_, kEveryHelp)->type_name("DURATION")->excludes(name)->excludes(cron);
    app.add_option("--start", start_, "Nothing before this moment; --every counts from it")->excludes(name);
    app.add_option("--from", from_, "After this moment; default now")->excludes(name);
    app.add_option("--count", count_, "How many; default 5")->check(CLI::Range(1U, Limits::kPreview));
    app.footer(
        "Examples:\n"
        "  delayq schedule next nightly\n"
        "  delayq schedule next --cron \"0 9 * * MON#1\" --zone Europe/Berlin --count 12\n"
        "  delayq schedule next --cron \"30 2 * * *\" --zone Europe/Berlin --from 2026-03-28T00:00:00Z");
  }

  Status run(const Session& session) override {
    if (!name_ && !cron_ && !every_) return invalid("NAME is needed, or a rule: --cron or --every");
    Words command{"SCHEDULE", "NEXT"};
    append_option(command, "NAME", name_);
    append_option(command, "CRON", cron_);
    append_option(command, "ZONE", zone_);
    append_option(command, "EVERY", every_);
    append_option(command, "START", start_);
    append_option(command, "FROM", from_);
    if (count_) append_option(command, "COUNT", std::to_string(*count_));
    const Result<resp::Value> reply = session.ask(command);
    if (!reply) return reply.error();
    if (reply->type != resp::Value::Type::kArray) return unexpected_reply();
    if (reply->items.empty() && !session.json) return explain_none(session);
    Table table;
    table.row({"LOCAL", "UTC", "WHEN"});
    for (const resp::Value& occurrence : reply->items) {
      if (!show(session, occurrence, table)) return unexpected_reply();
    }
    if (!session.json) session.world.out << table.text();
    return {};
  }

 private:
  static bool show(const Session& session, const resp::Value& occurrence, Table& table) {
    if (occurrence.items.size() != 2) return false;
    const std::optional<int64_t> at = number_in(occurrence.items[0]);
    if (!at) return false;
    const std::string& local = occurrence.items[1].text;
    std::string utc = format_moment(from_unix_ms(*at));
    if (session.json) {
      session.say({}, json::Object().text("at", utc).text("local", local).finish());
      return true;
    }
    if (utc.ends_with(".000Z")) utc.replace(utc.size() - 5, 5, "Z");
    table.row({printable(local, kShownInTable), utc, session.when(*at)});
    return true;
  }

  /// Why there is no next occurrence.
  Status explain_none(const Session& session) const {
    std::string why = "no occurrence to come";
    if (name_) {
      const Result<resp::Value> reply = session.ask({"SCHEDULE", "GET", *name_});
      if (!reply) return reply.error();
      const std::string state = shown_field(*reply, "state");
      if (state == "paused") why = "it is paused: no occurrence until it is resumed";
      if (state == "ended") why = "it has ended: no occurrence to come";
    }
    session.world.out << why << "\n";
    return {};
  }

  Text name_, cron_, zone_, every_, start_, from_;
  std::optional<uint32_t> count_;
};

class ScheduleList final : public Verb {
 public:
  std::string_view name() const override { return "schedule list"; }
  std::string_view help() const override { return "List the schedules"; }
  void add_options(CLI::App&) override {}

  Status run(const Session& session) override {
    Table table;
    table.row({"NAME", "RULE", "ZONE", "TOPIC", "STATE", "NEXT"});
    Words command{"SCHEDULE", "LIST", "COUNT", std::to_string(Limits::kPageJobs)};
    const size_t first_words = command.size();
    for (;;) {
      const Result<resp::Value> reply = session.ask(command);
      if (!reply) return reply.error();
      if (reply->items.size() != 2 || reply->items[1].type != resp::Value::Type::kArray)
        return unexpected_reply();
      for (const resp::Value& schedule : reply->items[1].items) {
        if (!show(session, schedule, table)) return unexpected_reply();
      }
      const std::string& cursor = reply->items[0].text;
      if (cursor.empty()) break;
      command.resize(first_words);
      append_option(command, "AFTER", cursor);
    }
    if (!session.json) session.world.out << table.text();
    return {};
  }

 private:
  static bool show(const Session& session, const resp::Value& schedule, Table& table) {
    if (schedule.find("name") == nullptr) return false;
    if (session.json) {
      session.say({}, map_as_json(schedule));
      return true;
    }
    const std::string every = shown_field(schedule, "every");
    const std::string problem = shown_field(schedule, "problem");
    table.row({shown_field(schedule, "name"),
               every.empty() ? shown_field(schedule, "cron") : "every " + every,
               shown_field(schedule, "zone"), shown_field(schedule, "topic"),
               problem.empty() ? shown_field(schedule, "state") : "broken",
               problem.empty() ? shown_next(session, schedule) : problem});
    return true;
  }
};

/// The verbs that need a name and nothing else.
class OfOneSchedule : public Verb {
 public:
  void add_options(CLI::App& app) override { app.add_option("NAME", schedule_, kNameHelp)->required(); }

 protected:
  const std::string& schedule() const { return schedule_; }
  Result<resp::Value> ask(const Session& session, std::string_view word) const {
    return session.ask({"SCHEDULE", std::string(word), schedule_});
  }

 private:
  std::string schedule_;
};

class ScheduleShow final : public OfOneSchedule {
 public:
  std::string_view name() const override { return "schedule show"; }
  std::string_view help() const override { return "All about a schedule"; }

  Status run(const Session& session) override {
    const Result<resp::Value> reply = ask(session, "GET");
    if (!reply) return reply.error();
    if (reply->type == resp::Value::Type::kNull) return no_such_schedule(schedule());
    if (reply->find("name") == nullptr) return unexpected_reply();
    if (!session.json) return show_map(session, *reply) ? Status{} : unexpected_reply();
    session.say({}, map_as_json(*reply));
    return {};
  }
};

class SchedulePause final : public OfOneSchedule {
 public:
  explicit SchedulePause(bool pause) : pause_(pause) {}
  std::string_view name() const override { return pause_ ? "schedule pause" : "schedule resume"; }
  std::string_view help() const override {
    return pause_ ? "Stop a schedule until it is resumed" : "Let a paused schedule go on";
  }

  Status run(const Session& session) override {
    const Result<resp::Value> reply = ask(session, pause_ ? "PAUSE" : "RESUME");
    if (!reply) return reply.error();
    if (!pause_ || reply->find("name") == nullptr) return tell_schedule(session, *reply, "resumed");
    session.say("paused", map_as_json(*reply));
    return {};
  }

 private:
  bool pause_;
};

class ScheduleRunNow final : public OfOneSchedule {
 public:
  std::string_view name() const override { return "schedule run"; }
  std::string_view help() const override { return "Make a job of a schedule now, besides its occurrences"; }

  Status run(const Session& session) override {
    const Result<resp::Value> reply = ask(session, "RUN");
    if (!reply) return reply.error();
    const resp::Value* const id = reply->find("id");
    if (id == nullptr) return unexpected_reply();
    session.say(printable(id->text, Limits::kIdBytes * 4), map_as_json(*reply));
    return {};
  }
};

class ScheduleRemove final : public OfOneSchedule {
 public:
  std::string_view name() const override { return "schedule remove"; }
  std::string_view help() const override { return "Remove a schedule; the jobs that it has made stay"; }

  Status run(const Session& session) override {
    const Result<resp::Value> reply = ask(session, "DEL");
    if (!reply) return reply.error();
    if (reply->text != "OK") return unexpected_reply();
    session.say("removed", json::Object().text("result", "ok").finish());
    return {};
  }
};

}  // namespace

void add_schedule_verbs(Verbs& verbs) {
  verbs.push_back(std::make_unique<ScheduleSet>());
  verbs.push_back(std::make_unique<ScheduleNext>());
  verbs.push_back(std::make_unique<ScheduleList>());
  verbs.push_back(std::make_unique<ScheduleShow>());
  verbs.push_back(std::make_unique<SchedulePause>(true));
  verbs.push_back(std::make_unique<SchedulePause>(false));
  verbs.push_back(std::make_unique<ScheduleRunNow>());
  verbs.push_back(std::make_unique<ScheduleRemove>());
}

}  // namespace delayq::cli
