// migrate: copies or moves all jobs, settings and schedules of one server, data directory or Redis to another
// one, whatever their engines are.
#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/importing.h"
#include "cli/migration.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

using Counts = Migration::Counts;

constexpr uint64_t kMostTold = 20;
constexpr std::string_view kOtherPrefix = "?prefix=NAME says it when redis.prefix is not delayq";

uint64_t total_of(const Counts& topics) {
  uint64_t total = 0;
  for (const auto& [name, counts] : topics) total += counts.all();
  return total;
}

uint64_t removed_of(const Migration& migration) {
  uint64_t removed = 0;
  for (const auto& [name, ledger] : migration.topics()) removed += ledger.removed;
  return removed;
}

Error missing(Error error) {
  error.detail += "; make it first, if it is to be a new one";
  return error;
}

void write_side(json::Writer& json, std::string_view side, const TopicCounts& counts) {
  json.key(side).begin_object().key("waiting").number(counts.live());
  for (size_t i = 0; i < TopicCounts::kStates.size(); ++i)
    json.key(TopicCounts::kStates[i]).number(counts.states[i]);
  json.end_object();
}

class Migrate final : public Verb {
 public:
  std::string_view name() const override { return "migrate"; }
  std::string_view help() const override {
    return "Copy or move all jobs, settings and schedules from one engine or server to another";
  }
  bool is_client() const override { return false; }
  void add_options(CLI::App& app) override {
    constexpr const char* kWhere =
        "a data directory, redis://HOST:PORT[/DATABASE][?prefix=NAME] (redis-sentinel://, redis-cluster://), "
        "or a running server: delayq://[TOKEN@]HOST:PORT (delayqs:// over TLS)";
    app.add_option("--from", from_, std::string("Where the jobs are: ") + kWhere)
        ->required()
        ->type_name("PLACE");
    app.add_option("--to", to_, "Where the jobs will be, in the same format")->required()->type_name("PLACE");
    app.add_flag("--yes", yes_, "Do it; without it, only print what would be done");
    app.add_flag("--dry-run", dry_run_, "Do not do it, which is the default");
    app.add_flag("--remove", remove_,
                 "With --yes: move them, so that the source has none in the end; else it keeps all");
  }

  Status run(const Session& session) override {
    if (yes_ && dry_run_) return invalid("--yes and --dry-run: one of them");
    if (remove_ && !yes_) return invalid("--remove: needs --yes, after a look at what a dry run says");
    if (from_ == to_) return invalid("--to: is the same as --from");
    using Access = Surroundings::Access;
    const Result<Place> from =
        open_place(session.world, "--from", from_, yes_ ? Access::kFind : Access::kLook);
    if (!from) return from.error();
    const Result<Place> to = open_place(session.world, "--to", to_, yes_ ? Access::kMake : Access::kLook);
    if (!to) return to.error().code == ErrorCode::kNotFound ? missing(to.error()) : to.error();
    const Result<Counts> there = count_topics(from->ask);
    if (!there) return in_place(*from, there.error());
    const Result<Counts> before = count_topics(to->ask);
    if (!before) return in_place(*to, before.error());
    const ScheduleCount schedules = count_schedules(from->ask);
    if (!yes_) return tell(session, *from, *to, *there, *before, nullptr);
    const std::string topic = there->empty() ? schedules.topic : there->begin()->first;
    if (!topic.empty()) {
      if (Status status = check_apart(*from, *to, topic); !status) return status;
    }
    return carry_out(session, *from, *to, *there, *before);
  }

 private:
  Status carry_out(const Session& session, const Place& from, const Place& to, const Counts& there,
                   const Counts& before) {
    std::optional<Progress> progress(std::in_place, session.world, remove_ ? "moving" : "copying",
                                     total_of(there));
    uint64_t told = 0;
    Migration migration(from, to, remove_,
                        {[&](uint64_t lines) { progress->show(lines, lines); },
                         [&](const std::string& line, const Error& error) {
                           if (++told > kMostTold) return;
                           session.world.err
                               << fmt::format("{}: {}\n", printable(line, 2 * kShownTopic), error.detail);
                         }});
    const Status status = migration.run();
    progress.reset();
    if (!status) {
      Error error = status.error();
      error.detail += "; what was copied stays, and the same command goes on from here";
      return error;
    }
    const Result<Counts> after = count_topics(to.ask);
    if (!after) return in_place(to, after.error());
    // The source as it is now: its jobs may have changed meanwhile, if a server uses it.
    const Result<Counts> left = count_topics(from.ask);
    if (!left) return in_place(from, left.error());
    Status shown = tell(session, from, to, *left, *after, &migration);
    const auto differences = migration.differences(before, *left, *after, session.world.now());
    if (differences.empty()) return shown;
    for (size_t i = 0; i < std::min<size_t>(differences.size(), kMostTold); ++i)
      session.world.err << differences[i] << "\n";
    const bool has_failed = migration.lines().failed() > 0;
    return Error{has_failed ? migration.lines().first_error() : ErrorCode::kConflict,
                 {},
                 fmt::format("not everything is as it should be: {} of {} topics differ, or had lines that "
                             "were not stored",
                             differences.size(), std::max(left->size(), migration.topics().size()))};
  }

  /// Both sides by topic; after a copy, the results of the lines.
  Status tell(const Session& session, const Place& from, const Place& to, const Counts& there,
              const Counts& here, const Migration* migration) const {
    Table table;
    table.row({"TOPIC", "WAITING", "DONE", "DEAD", "THERE: WAITING", "DONE", "DEAD"});
    std::string text;
    json::Writer json(text);
    json.begin_object().key("from").text(from.name).key("to").text(to.name).key("dry_run").boolean(!yes_);
    json.key("topics").begin_array();
    for (const auto& [name, counts] : there) {
      const TopicCounts other = counts_of(here, name);
      table.row({printable(name, kShownTopic), grouped_count(counts.live()), grouped_count(counts.done()),
                 grouped_count(counts.dead()), grouped_count(other.live()), grouped_count(other.done()),
                 grouped_count(other.dead())});
      json.begin_object().key("topic").text(name);
      write_side(json, "from", counts);
      write_side(json, "to", other);
      json.end_object();
    }
    json.end_array();
    const uint64_t schedules_there = count_schedules(from.ask).count;
    const uint64_t schedules_here = count_schedules(to.ask).count;
    json.key("schedules").begin_object().key("from").number(schedules_there);
    json.key("to").number(schedules_here);
    if (migration != nullptr) json.key("removed").number(migration->schedules().removed);
    json.end_object();
    if (!yes_) {
      json.key("from_is_new").boolean(from.is_new).key("to_is_new").boolean(to.is_new);
      if (to.shards > 0) json.key("to_shards").number(uint64_t{to.shards});
    }
    if (migration != nullptr) {
      for (const std::string_view outcome : ImportCounts::kOutcomes)
        json.key(outcome).number(migration->lines().of(outcome));
      json.key("failed").number(migration->lines().failed()).key("removed").number(removed_of(*migration));
    }
    json.end_object();
    std::string human = fmt::format("{} -> {}: {} jobs in {} topics", from.name, to.name,
                                    grouped_count(total_of(there)), grouped_count(there.size()));
    if (schedules_there + schedules_here > 0)
      human += fmt::format("; {} schedules, and {} there", grouped_count(schedules_there),
                           grouped_count(schedules_here));
    human += "\n";
    if (!there.empty()) human += table.text();
    human += migration == nullptr ? dry_text(from, to, !there.empty() || schedules_there > 0)
                                  : outcome_text(*migration, from);
    session.say(human, text);
    return {};
  }

  static std::string dry_text(const Place& from, const Place& to, bool has_any) {
    std::string text;
    if (from.is_new)
      text += fmt::format("{} has no jobs, and never had{}{}.\n", from.name, from.shards > 0 ? "; " : "",
                          from.shards > 0 ? kOtherPrefix : "");
    if (to.is_new && to.shards > 0)
      text += fmt::format("{} is new: --yes would prepare it with {} shard{}, which it has for ever.\n",
                          to.name, to.shards, to.shards == 1 ? "" : "s");
    if (to.is_new && to.shards == 0) text += fmt::format("{} is new: --yes would prepare it.\n", to.name);
    text += "Nothing was changed.";
    return has_any ? text + " --yes copies them, --yes --remove moves them." : text;
  }

  std::string outcome_text(const Migration& migration, const Place& from) const {
    std::string text =
        fmt::format("{} lines: {}", grouped_count(migration.lines().lines()), migration.lines().text());
    const ScheduleMigration::Ledger& schedules = migration.schedules();
    if (remove_) {
      text += fmt::format("; {} removed from {}", grouped_count(removed_of(migration)), from.name);
      if (schedules.removed > 0) text += fmt::format(", and {} schedules", grouped_count(schedules.removed));
      return text;
    }
    return text +
           fmt::format(
               ".\n{} still has its jobs{}, and would hand them over as well: do not serve it any more, or "
               "run this again with --remove.",
               from.name, schedules.all() > 0 ? " and schedules" : "");
  }

  std::string from_, to_;
  bool yes_ = false;
  bool dry_run_ = false;
  bool remove_ = false;
};

}  // namespace

void add_migrate_verb(Verbs& verbs) { verbs.push_back(std::make_unique<Migrate>()); }

}  // namespace delayq::cli
