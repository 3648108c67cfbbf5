// list: the jobs of a topic by state, once or again and again. consumers: who takes jobs.
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
#include "json/writer.h"

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
      append_option(command, "DUEAFTER", filter.due_after);
      append_option(command, "DUEBEFORE", filter.due_before);
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
    app.add_option("--due-after", due_after_,
                   "Only jobs due then or later: a moment, or from now: 2h, -30m, now");
    app.add_option("--due-before", due_before_, "Only jobs due before then: as --due-after");
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
        "  delayq list order delayed --due-before 5m\n"
        "  delayq list order dead --error timeout --due-after -1d --count 1000");
  }

  Status run(const Session& session) override {
    if (filter_.states.empty()) filter_.states = {"reserved", "ready", "delayed", "dead", "done"};
    // Each state once, whatever was typed.
    std::vector<std::string> once;
    for (const std::string& state : filter_.states) {
      if (std::find(once.begin(), once.end(), state) == once.end()) once.push_back(state);
    }
    filter_.states = std::move(once);
    for (const bool is_after : {true, false}) {
      Result<std::optional<DueBound>> bound = read_bound(is_after);
      if (!bound) return bound.error();
      (is_after ? after_ : before_) = *bound;
    }
    return watch_ ? watch(session) : show(session);
  }

 private:
  /// One end of the due times: a moment, or so long from the server's now.
  struct DueBound {
    std::optional<Moment> at;
    Millis from_now{};
  };

  Result<std::optional<DueBound>> read_bound(bool is_after) const {
    const std::optional<std::string>& given = is_after ? due_after_ : due_before_;
    if (!given) return std::optional<DueBound>();
    if (*given == "now") return std::optional(DueBound{});
    // A bare number is a moment, in Unix seconds, as it is for the server.
    if (const Result<Moment> at = parse_moment(*given)) return std::optional(DueBound{*at, {}});
    const bool is_past = given->starts_with('-');
    const Result<Millis> length = parse_duration(std::string_view(*given).substr(is_past ? 1 : 0));
    if (!length || *length > Limits::kMaxDelay || *length < Millis::zero()) {
      return invalid(
          fmt::format("{}: {} is neither a moment like 2030-01-31T08:00:00Z nor a time from now like "
                      "2h or -30m, up to 100 years",
                      is_after ? "--due-after" : "--due-before", quote(*given)));
    }
    return std::optional(DueBound{std::nullopt, is_past ? -*length : *length});
  }

  /// The filter with its due times as moments.
  Result<JobFilter> filter_now(const Session& session) const {
    JobFilter filter = filter_;
    std::optional<Moment> now;
    if ((after_ && !after_->at) || (before_ && !before_->at)) {
      const Result<resp::Value> server = session.ask({"SERVER"});
      if (!server) return server.error();
      now = from_unix_ms(number_of(*server, "now_ms"));
    }
    const auto text_of = [&](const std::optional<DueBound>& bound) {
      // The server's moments begin in 1970.
      return bound ? std::optional(
                         format_moment(std::max(Moment{}, bound->at ? *bound->at : *now + bound->from_now)))
                   : std::nullopt;
    };
    filter.due_after = text_of(after_);
    filter.due_before = text_of(before_);
    return filter;
  }

  Status show(const Session& session) {
    JobRows rows;
    const Result<JobFilter> filter = filter_now(session);
    if (!filter) return filter.error();
    const Result<JobWalk> walk = walk_jobs(session, *filter, count_, kAllPages, [&](const resp::Value& job) {
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
    return filter_.prefix || filter_.error || after_ || before_ || filter_.states.size() < kJobStateCount;
  }

  Result<ListSnapshot> sample(const Session& session) const {
    const Result<resp::Value> stats = session.ask({"STATS", filter_.topic});
    if (!stats) return stats.error();
    ListSnapshot snapshot{.server = session.server_name,
                          .topic = filter_.topic,
                          .at = session.world.now(),
                          .counts = shown_counts(*stats)};
    const Result<JobFilter> filter = filter_now(session);
    if (!filter) return filter.error();
    const Result<JobWalk> walk =
        walk_jobs(session, *filter, count_, kPagesPerLook,
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
  std::optional<std::string> due_after_, due_before_;
  std::optional<DueBound> after_, before_;
  uint64_t count_ = 100;
  std::string interval_ = "1s";
  bool watch_ = false;
};

// The verb consumers.

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
    std::optional<int64_t> oldest_ms{};  ///< since when the longest held one is held, as far as is known
    std::vector<resp::Value> jobs{};
  };
  /// A topic with reserved jobs. One without `since` has leases of which this is not known.
  struct Busy {
    std::optional<int64_t> since_ms;
    std::string topic;
    bool operator<(const Busy& other) const { return since_ms < other.since_ms; }
  };

  /// Reserved jobs, as many as are shown in all: first of the topics with the oldest leases.
  Status find_leases(const Session& session, Leases& leases) const {
    std::vector<Busy> busy;
    if (Status status = find_busy(session, leases, busy); !status) return status;
    std::stable_sort(busy.begin(), busy.end());
    for (const Busy& each : busy) {
      if (each.since_ms)
        leases.oldest_ms = std::min(leases.oldest_ms.value_or(*each.since_ms), *each.since_ms);
      if (leases.jobs.size() >= count_) continue;
      const Result<resp::Value> page =
          session.ask({"LIST", each.topic, "reserved", "COUNT", std::to_string(count_ - leases.jobs.size())});
      if (!page) return page.error();
      if (!is_page(*page)) return unexpected_reply();
      leases.jobs.insert(leases.jobs.end(), page->items[1].items.begin(), page->items[1].items.end());
    }
    // Those that are with their consumer for the longest time first; 0, which is unknown, before all others.
    std::stable_sort(leases.jobs.begin(), leases.jobs.end(), [](const resp::Value& a, const resp::Value& b) {
      return number_of(a, "handed_over_ms") < number_of(b, "handed_over_ms");
    });
    return {};
  }

  static Status find_busy(const Session& session, Leases& leases, std::vector<Busy>& busy) {
    constexpr std::string_view kPage = "1000";
    Words command{"TOPICS", "", std::string(kPage), "FIELDS"};
    for (;;) {
      const Result<resp::Value> reply = session.ask(command);
      if (!reply) return reply.error();
      if (!is_page(*reply)) return unexpected_reply();
      for (const resp::Value& row : reply->items[1].items) {
        if (row.find("topic") == nullptr || row.find("reserved") == nullptr) return unexpected_reply();
        const int64_t reserved = number_of(row, "reserved");
        leases.total += reserved;
        if (reserved == 0) continue;
        const resp::Value* const since = row.find("oldest_lease_ms");
        busy.push_back(
            {since == nullptr ? std::nullopt : number_in(*since), std::string(field_text(row, "topic"))});
      }
      const std::string& cursor = reply->items[0].text;
      if (cursor.empty()) return {};
      command[1] = cursor;
    }
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
    json.key("leases_total").number(leases.total);
    if (leases.oldest_ms) json.key("oldest_lease_at").text(format_moment(from_unix_ms(*leases.oldest_ms)));
    json.end_object();
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
    session.world.out << fmt::format(
        "leases held: {}{}\n", grouped(leases.total),
        leases.oldest_ms ? fmt::format(", the oldest since {}", session.when(*leases.oldest_ms)) : "");
    if (leases.jobs.empty()) return;
    Table table;
    table.row({"TOPIC", "ID", "ATTEMPT", "DUE", "HELD SINCE", "LEASE ENDS"});
    for (const resp::Value& job : leases.jobs) {
      table.row({printable(field_text(job, "topic"), kShownTopic),
                 printable(field_text(job, "id"), kShownCell), grouped(number_of(job, "attempts")),
                 session.when(number_of(job, "due_ms")), when_of(session, job, "handed_over_ms"),
                 session.when(number_of(job, "until_ms"))});
    }
    session.world.out << table.text();
    if (static_cast<int64_t>(leases.jobs.size()) < leases.total)
      session.world.out << "and more: see --count\n";
  }

  uint32_t count_ = 100;
};

}  // namespace

void add_list_verb(Verbs& verbs) {
  verbs.push_back(std::make_unique<List>());
  verbs.push_back(std::make_unique<Consumers>());
}

}  // namespace delayq::cli
