#include "cli/top_view.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "cli/columns.h"
#include "cli/human.h"
#include "core/duration.h"
#include "core/moment.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

constexpr size_t kNameWidth = 16;   // at least, before columns go
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

/// As many digits as are worth reading; what the last bucket counts has no upper end.
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

/// Those that leave room for the names.
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

}  // namespace delayq::cli
