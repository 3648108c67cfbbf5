#include "cli/top.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <ostream>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/terminal.h"
#include "cli/verb.h"
#include "core/duration.h"
#include "core/limits.h"
#include "core/moment.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

/// Statistics that are asked for together: their replies must fit into what a server keeps for a client.
constexpr size_t kBatch = 200;

/// Per second, to a hundredth.
double rate(int64_t before, int64_t now, double seconds) {
  // Fewer than before: the server was restarted, or the topic was forgotten meanwhile.
  if (seconds <= 0 || now < before) return 0;
  return std::round(100 * static_cast<double>(now - before) / seconds) / 100;
}

}  // namespace

Result<TopSnapshot> TopSource::sample() {
  const std::vector<Words> first{{"STATS"}, {"TOPICS", cursors_.back(), std::to_string(page_)}};
  const Result<std::vector<resp::Value>> overview = session_.ask_all(first);
  if (!overview) return overview.error();
  for (const resp::Value& reply : *overview) {
    if (reply.is_error()) return error_of_reply(reply.text);
  }
  const resp::Value& page = (*overview)[1];
  if (!is_page(page)) return unexpected_reply();
  TopSnapshot snapshot;
  snapshot.server = server_;
  snapshot.at = session_.world.now();
  snapshot.span = last_ == Moment{} ? Millis{} : snapshot.at - last_;
  const double seconds = std::chrono::duration<double>(snapshot.span).count();
  now_.clear();
  snapshot.totals = row_of({}, (*overview)[0], seconds);
  snapshot.topics = number_of((*overview)[0], "topics");
  snapshot.first = sizes_.back();
  next_cursor_ = page.items[0].text;
  snapshot.is_last = next_cursor_.empty();
  const std::vector<resp::Value>& topics = page.items[1].items;
  for (size_t begin = 0; begin < topics.size(); begin += kBatch) {
    std::vector<Words> batch;
    for (size_t i = begin; i < std::min(begin + kBatch, topics.size()); ++i) {
      if (topics[i].items.empty()) return unexpected_reply();
      batch.push_back({"STATS", topics[i].items[0].text});
    }
    const Result<std::vector<resp::Value>> replies = session_.ask_all(batch);
    if (!replies) return replies.error();
    for (size_t i = 0; i < batch.size(); ++i) {
      // A topic that the token does not allow is left out.
      if (!(*replies)[i].is_error()) snapshot.rows.push_back(row_of(batch[i][1], (*replies)[i], seconds));
    }
  }
  shown_ = topics.size();
  before_ = now_;
  last_ = snapshot.at;
  return snapshot;
}

TopRow TopSource::row_of(const std::string& topic, const resp::Value& stats, double seconds) {
  const Counts counts{number_of(stats, "pushed"), number_of(stats, "popped"), number_of(stats, "acked")};
  now_[topic] = counts;
  const auto found = before_.find(topic);
  const Counts before = found == before_.end() ? counts : found->second;
  return {.topic = topic,
          .delayed = number_of(stats, "delayed"),
          .ready = number_of(stats, "ready"),
          .reserved = number_of(stats, "reserved"),
          .done = number_of(stats, "done"),
          .dead = number_of(stats, "dead"),
          .waiters = number_of(stats, "waiters"),
          .push_rate = rate(before.pushed, counts.pushed, seconds),
          .pop_rate = rate(before.popped, counts.popped, seconds),
          .ack_rate = rate(before.acked, counts.acked, seconds),
          .late_p50 = Millis{number_of(stats, "lateness_p50_ms")},
          .late_p99 = Millis{number_of(stats, "lateness_p99_ms")},
          .paused = number_of(stats, "paused") != 0};
}

void TopSource::next_page() {
  if (next_cursor_.empty()) return;
  sizes_.push_back(sizes_.back() + shown_);
  cursors_.push_back(next_cursor_);
}

void TopSource::previous_page() {
  if (cursors_.size() == 1) return;
  cursors_.pop_back();
  sizes_.pop_back();
}

namespace {

constexpr size_t kNameWidth = 16;   // at least; columns are left out before it gets narrower
constexpr size_t kLinesAround = 4;  // title, heading, totals, keys
constexpr size_t kLongestName = 200;

struct SortRow {
  TopSort sort;
  std::string_view name;
  char key;
};
constexpr std::array<SortRow, 10> kSorts{{{TopSort::kName, "name", 'n'},
                                          {TopSort::kDelayed, "delayed", 'd'},
                                          {TopSort::kReady, "ready", 'r'},
                                          {TopSort::kReserved, "reserved", 'v'},
                                          {TopSort::kDead, "dead", 'x'},
                                          {TopSort::kPush, "push", 'p'},
                                          {TopSort::kPop, "pop", 'o'},
                                          {TopSort::kAck, "ack", 'a'},
                                          {TopSort::kLate, "late", 'l'},
                                          {TopSort::kWaiters, "waiters", 'w'}}};

/// At most six columns: "12,345", "123k", "1.2M".
std::string short_count(int64_t number) {
  if (number < 100'000) return grouped(number);
  constexpr std::array<char, 4> kUnits{'k', 'M', 'G', 'T'};
  auto size = static_cast<double>(number) / 1'000;
  size_t unit = 0;
  while (size >= 999.5 && unit + 1 < kUnits.size()) {
    size /= 1'000;
    ++unit;
  }
  return size < 99.95 ? fmt::format("{:.1f}{}", size, kUnits[unit])
                      : fmt::format("{:.0f}{}", size, kUnits[unit]);
}

std::string short_rate(double rate) {
  if (rate <= 0) return "-";
  if (rate < 10) return fmt::format("{:.1f}", rate);
  return short_count(std::llround(rate));
}

/// As many digits as are worth reading; the last bucket has no upper bound.
std::string short_time(Millis time) {
  if (time == Millis::max()) return ">1d";
  if (time < std::chrono::seconds{10}) return fmt::format("{}ms", time.count());
  if (time < std::chrono::minutes{10}) return fmt::format("{}s", time.count() / 1'000);
  return fmt::format("{}m", time.count() / 60'000);
}

struct Column {
  std::string_view title;
  size_t width;
  int importance;  ///< the lowest goes first when there is no room
  TopSort sort;
  std::function<std::string(const TopRow&)> cell;
};

std::vector<Column> all_columns() {
  return {
      {"DELAYED", 8, 9, TopSort::kDelayed, [](const TopRow& row) { return short_count(row.delayed); }},
      {"READY", 8, 10, TopSort::kReady, [](const TopRow& row) { return short_count(row.ready); }},
      {"RESERVED", 9, 5, TopSort::kReserved, [](const TopRow& row) { return short_count(row.reserved); }},
      {"DONE", 8, 1, TopSort::kName, [](const TopRow& row) { return short_count(row.done); }},
      {"DEAD", 8, 8, TopSort::kDead, [](const TopRow& row) { return short_count(row.dead); }},
      {"PUSH/S", 8, 7, TopSort::kPush, [](const TopRow& row) { return short_rate(row.push_rate); }},
      {"POP/S", 8, 4, TopSort::kPop, [](const TopRow& row) { return short_rate(row.pop_rate); }},
      {"ACK/S", 8, 6, TopSort::kAck, [](const TopRow& row) { return short_rate(row.ack_rate); }},
      {"P50", 8, 2, TopSort::kName, [](const TopRow& row) { return short_time(row.late_p50); }},
      {"P99", 8, 6, TopSort::kLate, [](const TopRow& row) { return short_time(row.late_p99); }},
      {"WAITERS", 8, 3, TopSort::kWaiters, [](const TopRow& row) { return short_count(row.waiters); }},
  };
}

/// The columns that leave room for the names.
std::vector<Column> fitting_columns(size_t width) {
  std::vector<Column> columns = all_columns();
  const auto taken = [&] {
    size_t sum = kNameWidth;
    for (const Column& column : columns) sum += column.width;
    return sum;
  };
  while (!columns.empty() && taken() > width) {
    columns.erase(std::min_element(columns.begin(), columns.end(), [](const Column& a, const Column& b) {
      return a.importance < b.importance;
    }));
  }
  return columns;
}

std::string line_of(const std::vector<Column>& columns, size_t width, std::string_view name,
                    const std::function<std::string(const Column&)>& cell) {
  size_t room = width;
  for (const Column& column : columns) room -= std::min(room, column.width);
  std::string line = cut_to_columns(name, room);
  line.append(room - std::min(room, columns_of(line)), ' ');
  for (const Column& column : columns) line += fmt::format("{:>{}}", cell(column), column.width);
  return cut_to_columns(line, width);
}

std::string name_of(const TopRow& row) {
  return printable(row.topic, kLongestName) + (row.paused ? " (paused)" : "");
}

std::string title_of(const TopSnapshot& snapshot) {
  const std::string time = format_moment(snapshot.at).substr(11, 8);
  std::string title =
      fmt::format("delayq {}  {} UTC  {} topics", snapshot.server, time, grouped(snapshot.topics));
  if (snapshot.first > 0 || !snapshot.is_last) {
    title += fmt::format(", from {}", grouped(static_cast<int64_t>(snapshot.first) + 1));
  }
  title += fmt::format("  rates over {}", format_duration(snapshot.span));
  return snapshot.problem.empty() ? title : fmt::format("{}  NOT NEW: {}", title, snapshot.problem);
}

void write_row(json::Writer& json, const TopRow& row) {
  if (!row.topic.empty()) json.bytes("topic", row.topic).key("paused").boolean(row.paused);
  json.key("delayed").number(row.delayed).key("ready").number(row.ready);
  json.key("reserved").number(row.reserved).key("done").number(row.done).key("dead").number(row.dead);
  json.key("waiters").number(row.waiters);
  json.key("push_rate").number(row.push_rate).key("pop_rate").number(row.pop_rate);
  json.key("ack_rate").number(row.ack_rate);
  json.key("lateness_p50_ms").number(int64_t{row.late_p50.count()});
  json.key("lateness_p99_ms").number(int64_t{row.late_p99.count()});
}

}  // namespace

std::optional<TopSort> top_sort_of(std::string_view name) {
  for (const SortRow& row : kSorts) {
    if (row.name == name) return row.sort;
  }
  return std::nullopt;
}

std::optional<TopSort> top_sort_of(char key) {
  for (const SortRow& row : kSorts) {
    if (row.key == key) return row.sort;
  }
  return std::nullopt;
}

std::vector<std::string> top_sort_names() {
  std::vector<std::string> names;
  for (const SortRow& row : kSorts) names.emplace_back(row.name);
  return names;
}

void sort_rows(std::vector<TopRow>& rows, TopSort sort) {
  const auto value = [sort](const TopRow& row) -> double {
    switch (sort) {
      case TopSort::kName:
        return 0;
      case TopSort::kDelayed:
        return static_cast<double>(row.delayed);
      case TopSort::kReady:
        return static_cast<double>(row.ready);
      case TopSort::kReserved:
        return static_cast<double>(row.reserved);
      case TopSort::kDead:
        return static_cast<double>(row.dead);
      case TopSort::kPush:
        return row.push_rate;
      case TopSort::kPop:
        return row.pop_rate;
      case TopSort::kAck:
        return row.ack_rate;
      case TopSort::kLate:
        return static_cast<double>(row.late_p99.count());
      case TopSort::kWaiters:
        return static_cast<double>(row.waiters);
    }
    return 0;
  };
  std::sort(rows.begin(), rows.end(), [&](const TopRow& a, const TopRow& b) {
    const double left = value(a);
    const double right = value(b);
    return left != right ? left > right : a.topic < b.topic;
  });
}

size_t visible_rows(const TopLook& look) {
  return look.height > kLinesAround ? look.height - kLinesAround : 0;
}

std::vector<std::string> render_top(const TopSnapshot& snapshot, const TopLook& look) {
  const std::vector<Column> columns = fitting_columns(look.width);
  const auto row_line = [&](const TopRow& row, std::string_view name) {
    return line_of(columns, look.width, name, [&](const Column& column) { return column.cell(row); });
  };
  const auto styled = [&](std::string_view style, std::string line) {
    return look.styled ? fmt::format("\x1b[{}m{}\x1b[0m", style, line) : line;
  };
  std::vector<std::string> lines;
  lines.push_back(
      styled(snapshot.problem.empty() ? "1" : "31", cut_to_columns(title_of(snapshot), look.width)));
  lines.push_back(styled("7", line_of(columns, look.width, look.sort == TopSort::kName ? "TOPIC*" : "TOPIC",
                                      [&](const Column& column) {
                                        const bool sorted =
                                            column.sort == look.sort && look.sort != TopSort::kName;
                                        return std::string(column.title) + (sorted ? "*" : "");
                                      })));
  lines.push_back(styled("1", row_line(snapshot.totals, "all topics")));
  const size_t first = std::min(look.scroll, snapshot.rows.size());
  const size_t last = std::min(first + visible_rows(look), snapshot.rows.size());
  for (size_t i = first; i < last; ++i)
    lines.push_back(row_line(snapshot.rows[i], name_of(snapshot.rows[i])));
  if (look.styled) {
    lines.push_back(styled(
        "2", cut_to_columns("q quit  up/down scroll  </> page  sort: n name  r ready  d delayed  v reserved  "
                            "x dead  p push  o pop  a ack  l late  w waiters",
                            look.width)));
  }
  if (lines.size() > look.height) lines.resize(look.height);
  return lines;
}

std::string top_as_json(const TopSnapshot& snapshot) {
  std::string out;
  json::Writer json(out);
  json.begin_object();
  json.key("at_ms").number(int64_t{to_unix_ms(snapshot.at)});
  json.key("span_ms").number(int64_t{snapshot.span.count()});
  json.key("topics").number(snapshot.topics);
  json.key("totals").begin_object();
  write_row(json, snapshot.totals);
  json.end_object().key("rows").begin_array();
  for (const TopRow& row : snapshot.rows) {
    json.begin_object();
    write_row(json, row);
    json.end_object();
  }
  json.end_array().end_object();
  return out;
}

// The verb top.

namespace {

constexpr uint32_t kPage = 500;
constexpr Millis kShortestInterval{100};
constexpr Millis kLongestInterval = std::chrono::hours{1};
constexpr size_t kPipeWidth = 132;

class Top final : public Verb {
 public:
  std::string_view name() const override { return "top"; }
  std::string_view help() const override { return "Watch the topics: counts, rates, lateness"; }

  void add_options(CLI::App& app) override {
    app.add_option("--interval", interval_, "Time between updates; default 1s");
    app.add_option("--sort", sort_, "The column to sort by; default ready")
        ->check(CLI::IsMember(top_sort_names()));
    app.add_option("--page", page_, "Topics per request; default 500")
        ->check(CLI::Range(1U, Limits::kPageJobs));
    app.add_flag("--once", once_, "Print once, after one interval, and exit; the default without a terminal");
  }

  Status run(const Session& session) override {
    const Result<Millis> interval = parse_duration(interval_);
    if (!interval)
      return Error{interval.error().code, {}, fmt::format("--interval: {}", interval.error().detail)};
    if (*interval < kShortestInterval || *interval > kLongestInterval)
      return invalid("--interval: expected 100ms to 1h");
    TopSource source(session, session.server_name, page_);
    Result<TopSnapshot> first = source.sample();
    if (!first) return first.error();
    look_.sort = top_sort_of(std::string_view(sort_)).value_or(TopSort::kReady);
    const bool interactive = session.world.out_is_terminal && !once_ && !session.json_asked;
    return interactive ? watch(source, std::move(*first), *interval) : once(session, source, *interval);
  }

 private:
  Status once(const Session& session, TopSource& source, Millis interval) {
    poll(nullptr, 0, static_cast<int>(interval.count()));
    Result<TopSnapshot> snapshot = source.sample();
    if (!snapshot) return snapshot.error();
    sort_rows(snapshot->rows, look_.sort);
    if (session.json) {
      session.say_json(top_as_json(*snapshot));
      return {};
    }
    look_.width = session.world.out_is_terminal ? Terminal::size().width : kPipeWidth;
    look_.height = snapshot->rows.size() + 4;
    for (const std::string& line : render_top(*snapshot, look_)) session.world.out << line << "\n";
    return {};
  }

  Status watch(TopSource& source, TopSnapshot snapshot, Millis interval) {
    using Clock = std::chrono::steady_clock;
    Terminal terminal;
    look_.styled = true;
    Clock::time_point next = Clock::now() + interval;
    for (;;) {
      show(terminal, snapshot);
      const auto left = std::chrono::ceil<Millis>(next - Clock::now());
      switch (terminal.wait(left)) {
        case Terminal::Event::kStop:
          return {};
        case Terminal::Event::kUp:
          look_.scroll -= look_.scroll > 0 ? 1 : 0;
          break;
        case Terminal::Event::kDown:
          ++look_.scroll;
          break;
        case Terminal::Event::kPageUp:
          look_.scroll -= std::min(look_.scroll, visible_rows(look_));
          break;
        case Terminal::Event::kPageDown:
          look_.scroll += visible_rows(look_);
          break;
        case Terminal::Event::kKey:
          if (!press(terminal.key(), source, next)) return {};
          break;
        case Terminal::Event::kNothing:
        case Terminal::Event::kResized:
          break;
      }
      if (Clock::now() < next) continue;
      next = Clock::now() + interval;
      Result<TopSnapshot> newer = source.sample();
      if (newer) {
        snapshot = std::move(*newer);
      } else {
        snapshot.problem = newer.error().detail;
      }
    }
  }

  /// Returns false if the user ends it.
  bool press(char key, TopSource& source, std::chrono::steady_clock::time_point& next) {
    if (key == 'q') return false;
    if (const std::optional<TopSort> sort = top_sort_of(key)) look_.sort = *sort;
    if (key != '<' && key != '>') return true;
    key == '<' ? source.previous_page() : source.next_page();
    look_.scroll = 0;
    next = {};  // at once
    return true;
  }

  void show(const Terminal& terminal, TopSnapshot& snapshot) {
    const Terminal::Size size = Terminal::size();
    look_.width = size.width;
    look_.height = size.height;
    const size_t rows = visible_rows(look_);
    const size_t hidden = snapshot.rows.size() > rows ? snapshot.rows.size() - rows : 0;
    look_.scroll = std::min(look_.scroll, hidden);
    sort_rows(snapshot.rows, look_.sort);
    terminal.draw(render_top(snapshot, look_));
  }

  std::string interval_ = "1s";
  std::string sort_ = "ready";
  uint32_t page_ = kPage;
  bool once_ = false;
  TopLook look_;
};

}  // namespace

void add_top_verb(Verbs& verbs) { verbs.push_back(std::make_unique<Top>()); }

}  // namespace delayq::cli
