// All jobs and settings of one server, or data directory, into another one, whatever their engines are.
#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/human.h"
#include "cli/place.h"
#include "cli/progress.h"
#include "cli/topic_counts.h"
#include "cli/verb.h"
#include "core/limits.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

using Counts = std::map<std::string, TopicCounts>;

constexpr size_t kShownName = 60;
constexpr uint64_t kMostTold = 20;

std::string number(uint64_t count) { return grouped(static_cast<int64_t>(count)); }

uint64_t total_of(const Counts& topics) {
  uint64_t total = 0;
  for (const auto& [name, counts] : topics) total += counts.all();
  return total;
}

TopicCounts counts_of(const Counts& topics, const std::string& name) {
  const auto found = topics.find(name);
  return found == topics.end() ? TopicCounts{} : found->second;
}

class Migrate final : public Verb {
 public:
  std::string_view name() const override { return "migrate"; }
  std::string_view help() const override {
    return "Copy all jobs and settings of a server into another one, whatever their engines";
  }
  bool is_client() const override { return false; }
  void add_options(CLI::App& app) override {
    constexpr const char* kWhere = "delayq://[TOKEN@]HOST:PORT (delayqs:// over TLS), or a data directory";
    app.add_option("--from", from_, std::string("Where the jobs are: ") + kWhere)
        ->required()
        ->type_name("URL");
    app.add_option("--to", to_, "Where they are to be, named in the same way")->required()->type_name("URL");
    app.add_flag("--yes", yes_, "Do it; else it only says what there is to do");
    app.add_flag("--dry-run", dry_run_, "Do not do it, which is the default");
  }

  Status run(const Session& session) override {
    if (yes_ && dry_run_) return Error{ErrorCode::kInvalid, {}, "--yes and --dry-run: one of them"};
    if (from_ == to_) return Error{ErrorCode::kInvalid, {}, "--to: is the same as --from"};
    const Result<Place> from = open_place(session.world, "--from", from_);
    if (!from) return from.error();
    const Result<Place> to = open_place(session.world, "--to", to_);
    if (!to) return to.error();
    const Result<Counts> there = count_topics(from->ask);
    if (!there) return at(*from, there.error());
    const Result<Counts> before = count_topics(to->ask);
    if (!before) return at(*to, before.error());
    if (!yes_) return tell(session, *from, *to, *there, *before);
    Status status = copy(session, *from, *to, total_of(*there));
    if (!status) {
      Error error = status.error();
      error.detail += "; what was copied stays, and the same command goes on from here";
      return error;
    }
    // The source as it is now: its jobs went on meanwhile, as far as it was left to serve.
    const Result<Counts> left = count_topics(from->ask);
    if (!left) return at(*from, left.error());
    const Result<Counts> after = count_topics(to->ask);
    if (!after) return at(*to, after.error());
    if (Status told = tell(session, *from, *to, *left, *after); !told) return told;
    return verdict(*left, *after);
  }

 private:
  static Error at(const Place& place, Error error) {
    error.detail = fmt::format("{}: {}", place.name, error.detail);
    return error;
  }

  Status copy(const Session& session, const Place& from, const Place& to, uint64_t total) {
    Progress progress(session.world, "copying", total);
    std::string cursor;
    do {
      Words command{"EXPORT", "COUNT", std::to_string(Limits::kPageJobs)};
      if (!cursor.empty()) append_option(command, "CURSOR", cursor);
      Result<resp::Value> page = from.ask(command);
      if (!page) return at(from, page.error());
      if (page->items.size() != 2) return unexpected_reply();
      if (Status status = store(session, to, page->items[1].items); !status) return status;
      cursor = page->items[0].text;
      progress.show(counts_.lines(), counts_.lines());
    } while (!cursor.empty());
    return {};
  }

  Status store(const Session& session, const Place& to, std::vector<resp::Value>& page) {
    for (size_t begin = 0; begin < page.size();) {
      Words lines;
      size_t bytes = 0;
      const size_t first = begin;
      for (; begin < page.size() && lines.size() < kMostImportLines && bytes < kMostImportBytes; ++begin) {
        bytes += page[begin].text.size();
        lines.push_back(page[begin].text);
      }
      const auto answers = import_lines(to.ask, "keep", std::move(lines));
      if (!answers) return at(to, answers.error());
      for (size_t i = 0; i < answers->size(); ++i) {
        const std::optional<Error> error = counts_.add((*answers)[i]);
        if (!error || counts_.failed() > kMostTold) continue;
        session.world.err << fmt::format("{}: {}\n", printable(page[first + i].text, 2 * kShownName),
                                         error->detail);
      }
    }
    return {};
  }

  /// Both sides by topic; after a copy, what became of the lines.
  Status tell(const Session& session, const Place& from, const Place& to, const Counts& there,
              const Counts& here) const {
    Table table;
    table.row({"TOPIC", "WAITING", "DONE", "DEAD", "THERE: WAITING", "DONE", "DEAD"});
    std::string text;
    json::Writer json(text);
    json.begin_object().key("from").text(from.name).key("to").text(to.name).key("dry_run").boolean(!yes_);
    json.key("topics").begin_array();
    for (const auto& [name, counts] : there) {
      const TopicCounts other = counts_of(here, name);
      table.row({printable(name, kShownName), number(counts.live()), number(counts.done()),
                 number(counts.dead()), number(other.live()), number(other.done()), number(other.dead())});
      json.begin_object().key("topic").text(name);
      for (const auto& [side, each] : {std::pair{"from", counts}, {"to", other}}) {
        json.key(side).begin_object().key("waiting").number(each.live()).key("done").number(each.done());
        json.key("dead").number(each.dead()).end_object();
      }
      json.end_object();
    }
    json.end_array();
    if (yes_) {
      for (const std::string_view outcome : ImportCounts::kOutcomes)
        json.key(outcome).number(counts_.of(outcome));
      json.key("failed").number(counts_.failed());
    }
    json.end_object();
    std::string human = fmt::format("{} -> {}: {} jobs in {} topics\n", from.name, to.name,
                                    number(total_of(there)), number(there.size()));
    if (!there.empty()) human += table.text();
    human += yes_ ? fmt::format("{} lines: {}", number(counts_.lines()), counts_.text())
                  : std::string("Nothing was changed. --yes copies them.");
    session.say(human, text);
    return {};
  }

  Status verdict(const Counts& there, const Counts& here) const {
    if (counts_.failed() > 0) {
      return Error{counts_.first_error(),
                   {},
                   fmt::format("{} of {} lines were not stored", counts_.failed(), counts_.lines())};
    }
    for (const auto& [name, counts] : there) {
      const TopicCounts other = counts_of(here, name);
      const bool has_all =
          other.live() >= counts.live() && other.done() >= counts.done() && other.dead() >= counts.dead();
      if (has_all) continue;
      return Error{
          ErrorCode::kConflict,
          {},
          fmt::format("topic {} has fewer jobs there than here: were they taken meanwhile, or are fewer kept "
                      "there? The same command brings what is missing",
                      printable(name, kShownName))};
    }
    return {};
  }

  std::string from_, to_;
  bool yes_ = false;
  bool dry_run_ = false;
  ImportCounts counts_;
};

}  // namespace

void add_migrate_verb(Verbs& verbs) { verbs.push_back(std::make_unique<Migrate>()); }

}  // namespace delayq::cli
