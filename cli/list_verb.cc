// list: the jobs of a topic by state, once or again and again.
#include <algorithm>
#include <array>
#include <chrono>
#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/list_view.h"
#include "cli/terminal.h"
#include "core/duration.h"
#include "core/limits.h"
#include "core/moment.h"
#include "core/text.h"

namespace delayq::cli {

namespace {

constexpr size_t kListAround = 3;  // title, heading, keys

constexpr std::array<std::string_view, 7> kJobTitles{"ID",    "STATE", "DUE",    "ATTEMPTS",
                                                     "UNTIL", "GROUP", "OUTCOME"};

/// A field that is a moment, as a person reads it; empty if there is none.
std::string when_of(const Session& session, const resp::Value& job, std::string_view field) {
  const resp::Value* const value = job.find(field);
  const std::optional<int64_t> at = value == nullptr ? std::nullopt : number_in(*value);
  return at ? session.when(*at) : std::string();
}

}  // namespace

std::string JobRows::text(size_t most_columns) const {
  std::array<bool, kJobTitles.size()> is_used{};
  is_used[0] = true;
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) is_used[i] = is_used[i] || !row[i].empty();
  }
  const auto used = [&](const auto& cells) {
    std::vector<std::string> row;
    for (size_t i = 0; i < kJobTitles.size(); ++i) {
      if (is_used[i]) row.emplace_back(cells[i]);
    }
    return row;
  };
  Table table;
  table.row(used(kJobTitles));
  for (const auto& row : rows_) table.row(used(row));
  if (most_columns == 0) return table.text();
  // The outcome comes last and is the longest: it is what is cut.
  std::string cut;
  const std::string whole = table.text();
  for (size_t begin = 0; begin < whole.size();) {
    const size_t end = whole.find('\n', begin);
    cut += cut_to_columns(std::string_view(whole).substr(begin, end - begin), most_columns) + "\n";
    begin = end + 1;
  }
  return cut;
}

bool JobRows::add(const Session& session, const resp::Value& job) {
  if (job.find("id") == nullptr) return false;
  rows_.push_back({printable(field_text(job, "id"), kShownCell),
                   printable(field_text(job, "state"), kShownCell), when_of(session, job, "due_ms"),
                   grouped(number_of(job, "attempts")), when_of(session, job, "until_ms"),
                   printable(field_text(job, "group"), kShownCell),
                   printable(field_text(job, "outcome"), kShownCell)});
  return true;
}

Result<JobWalk> walk_jobs(const Session& session, const JobFilter& filter, uint64_t most, uint32_t most_pages,
                          const std::function<bool(const resp::Value& job)>& show) {
  JobWalk walk;
  for (const std::string& state : filter.states) {
    std::string cursor;
    do {
      // A page may be empty and have a cursor: then others follow.
      if (walk.jobs == most || walk.pages == most_pages) {
        walk.has_more = true;
        return walk;
      }
      Words command{"LIST", filter.topic, state};
      append_option(command, "PREFIX", filter.prefix);
      append_option(command, "ERROR", filter.error);
      append_option(command, "COUNT",
                    std::to_string(std::min<uint64_t>(most - walk.jobs, Limits::kPageJobs)));
      if (!cursor.empty()) append_option(command, "CURSOR", cursor);
      const Result<resp::Value> reply = session.ask(command);
      if (!reply) return reply.error();
      if (!is_page(*reply)) return unexpected_reply();
      ++walk.pages;
      for (const resp::Value& job : reply->items[1].items) {
        if (!show(job)) return unexpected_reply();
        ++walk.jobs;
      }
      cursor = reply->items[0].text;
      if (!session.world.out) return walk;  // nobody reads on
    } while (!cursor.empty());
  }
  return walk;
}

std::vector<std::string> render_list(const ListSnapshot& snapshot, const ListLook& look) {
  const auto styled = [&](std::string_view style, const std::string& line) {
    return look.styled ? fmt::format("\x1b[{}m{}\x1b[0m", style, line) : line;
  };
  const std::string time = format_moment(snapshot.at).substr(11, 8);
  std::string title =
      fmt::format("delayq {}  {} UTC  {}: {}", snapshot.server, time, printable(snapshot.topic, kShownTopic),
                  snapshot.counts.empty() ? "no jobs" : snapshot.counts);
  if (!snapshot.problem.empty())
    title += fmt::format("  NOT NEW: {}", printable(snapshot.problem, kShownCell));
  std::vector<std::string> lines{
      styled(snapshot.problem.empty() ? "1" : "31", cut_to_columns(title, look.width))};
  const std::string text = snapshot.rows.text(look.width);
  size_t number = 0;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = text.find('\n', begin);
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (number == 0) {
      line.append(look.width - std::min(look.width, columns_of(line)), ' ');
      lines.push_back(styled("7", line));
    } else if (number > look.scroll && lines.size() + 1 < look.height) {
      lines.push_back(std::move(line));
    }
  }
  if (look.styled)
    lines.push_back(
        styled("2", cut_to_columns(snapshot.has_more ? "q quit  up/down scroll  there are more: --count"
                                                     : "q quit  up/down scroll",
                                   look.width)));
  if (lines.size() > look.height) lines.resize(look.height);
  return lines;
}

// The verb list.

namespace {

constexpr uint32_t kAllPages = UINT32_MAX;
/// Of one look with --watch: a filter that nothing passes must not read a whole topic each second.
constexpr uint32_t kPagesPerLook = 10;
constexpr Millis kShortestWatch{100};
constexpr Millis kLongestWatch = std::chrono::hours{1};

class List final : public Verb {
 public:
  std::string_view name() const override { return "list"; }
  std::string_view help() const override { return "List the jobs of a topic, or watch them"; }

  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", filter_.topic, "The topic")->required();
    app.add_option("STATE", filter_.states, "Only jobs in these states; default all")
        ->delimiter(',')
        ->check(CLI::IsMember(job_state_names()));
    app.add_option("--prefix", filter_.prefix, "Only ids that start with this");
    app.add_option("--error", filter_.error, "Only jobs whose last error contains this");
    app.add_option("--count", count_, "The maximum number; default 100")
        ->check(CLI::Range(1U, 1'000'000'000U));
    CLI::Option* const watch =
        app.add_flag("--watch", watch_, "Show them again and again, until q or Ctrl-C; on a terminal");
    app.add_option("--interval", interval_, "With --watch: time between updates; default 1s")->needs(watch);
    app.footer(
        "UNTIL is when the lease of a reserved job ends, and how long a done or dead job is kept.\n"
        "Examples:\n"
        "  delayq list order\n"
        "  delayq list order ready reserved --watch\n"
        "  delayq list order dead --error timeout --count 1000");
  }

  Status run(const Session& session) override {
    if (filter_.states.empty()) filter_.states = {"reserved", "ready", "delayed", "dead", "done"};
    // Each state once, whatever was typed.
    std::vector<std::string> once;
    for (const std::string& state : filter_.states) {
      if (std::find(once.begin(), once.end(), state) == once.end()) once.push_back(state);
    }
    filter_.states = std::move(once);
    return watch_ ? watch(session) : show(session);
  }

 private:
  Status show(const Session& session) {
    JobRows rows;
    const Result<JobWalk> walk = walk_jobs(session, filter_, count_, kAllPages, [&](const resp::Value& job) {
      if (!session.json) return rows.add(session, job);
      if (job.find("id") == nullptr) return false;
      session.say({}, map_as_json(job));
      return true;
    });
    if (!walk) return walk.error();
    if (session.json) return {};
    std::ostream& out = session.world.out;
    if (rows.empty()) {
      out << fmt::format("no {}jobs in {}\n", is_filtered() ? "such " : "",
                         printable(filter_.topic, kShownTopic));
      return {};
    }
    out << rows.text(session.world.out_is_terminal ? Terminal::size().width : 0);
    if (!walk->has_more) return {};
    const Result<resp::Value> stats = session.ask({"STATS", filter_.topic});
    const std::string counts = stats && !is_filtered() ? shown_counts(*stats, filter_.states) : std::string();
    out << (counts.empty() ? "and more: see --count\n"
                           : fmt::format("and more, of {}: see --count\n", counts));
    return {};
  }

  bool is_filtered() const {
    return filter_.prefix || filter_.error || filter_.states.size() < kJobStateCount;
  }

  Result<ListSnapshot> sample(const Session& session) const {
    const Result<resp::Value> stats = session.ask({"STATS", filter_.topic});
    if (!stats) return stats.error();
    ListSnapshot snapshot{.server = session.server_name,
                          .topic = filter_.topic,
                          .at = session.world.now(),
                          .counts = shown_counts(*stats)};
    const Result<JobWalk> walk =
        walk_jobs(session, filter_, count_, kPagesPerLook,
                  [&](const resp::Value& job) { return snapshot.rows.add(session, job); });
    if (!walk) return walk.error();
    snapshot.has_more = walk->has_more;
    return snapshot;
  }

  Status watch(const Session& session) {
    const Result<Millis> interval = parse_duration(interval_);
    if (!interval)
      return Error{interval.error().code, {}, fmt::format("--interval: {}", interval.error().detail)};
    if (*interval < kShortestWatch || *interval > kLongestWatch)
      return invalid("--interval: expected 100ms to 1h");
    if (!session.world.out_is_terminal || session.json_asked)
      return invalid("--watch: needs a terminal; for a program there is: delayq events --topic TOPIC --json");
    Result<ListSnapshot> snapshot = sample(session);
    if (!snapshot) return snapshot.error();
    return draw(session, std::move(*snapshot), *interval);
  }

  Status draw(const Session& session, ListSnapshot snapshot, Millis interval) {
    using Clock = std::chrono::steady_clock;
    using Event = Terminal::Event;
    Terminal terminal;
    ListLook look{.styled = true};
    for (Clock::time_point next = Clock::now() + interval;;) {
      const Terminal::Size size = Terminal::size();
      look.width = size.width;
      look.height = size.height;
      const size_t page = size.height > kListAround ? size.height - kListAround : 1;
      look.scroll = std::min(look.scroll, snapshot.rows.size() - std::min(page, snapshot.rows.size()));
      terminal.draw(render_list(snapshot, look));
      const Event event = terminal.wait(std::chrono::ceil<Millis>(next - Clock::now()));
      if (event == Event::kStop || (event == Event::kKey && terminal.key() == 'q')) return {};
      if (event == Event::kUp) look.scroll -= look.scroll > 0 ? 1 : 0;
      if (event == Event::kDown) ++look.scroll;
      if (event == Event::kPageUp) look.scroll -= std::min(look.scroll, page);
      if (event == Event::kPageDown) look.scroll += page;
      if (Clock::now() < next) continue;
      Result<ListSnapshot> newer = sample(session);
      next = Clock::now() + interval;
      if (newer) {
        snapshot = std::move(*newer);
      } else {
        snapshot.problem = newer.error().detail;
      }
    }
  }

  JobFilter filter_;
  uint64_t count_ = 100;
  std::string interval_ = "1s";
  bool watch_ = false;
};

}  // namespace

void add_list_verb(Verbs& verbs) { verbs.push_back(std::make_unique<List>()); }

}  // namespace delayq::cli
