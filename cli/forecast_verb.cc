// forecast: a bar chart of what falls due.
#include <algorithm>
#include <chrono>
#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/forecast_view.h"
#include "cli/terminal.h"
#include "core/duration.h"
#include "core/limits.h"
#include "core/moment.h"
#include "core/text.h"
#include "json/writer.h"

namespace delayq::cli {

namespace {

constexpr size_t kLeastBar = 4;
constexpr size_t kChartWidth = 80;

struct Bricks {
  std::string_view job, occurrence;
};
constexpr Bricks kBlocks{"█", "░"};
constexpr Bricks kAscii{"#", "+"};

/// The beginning of a part, in UTC, as exactly as its length needs.
std::string label_of(Moment moment, Millis length) {
  const std::string text = format_moment(moment);
  if (length >= std::chrono::hours{24}) return text.substr(0, 10);
  const std::string day = text.substr(5, 5);
  return day + " " + (length >= std::chrono::minutes{1} ? text.substr(11, 5) : text.substr(11, 8));
}

std::string repeated(std::string_view brick, size_t times) {
  std::string text;
  for (; times > 0; --times) text += brick;
  return text;
}

/// "1,234", or "1,234 + 60 scheduled".
std::string shown_count(int64_t jobs, int64_t scheduled) {
  return scheduled == 0 ? grouped(jobs) : fmt::format("{} + {} scheduled", grouped(jobs), grouped(scheduled));
}

int64_t sum_of(const std::vector<int64_t>& counts) {
  int64_t sum = 0;
  for (const int64_t count : counts) sum += count;
  return sum;
}

/// As many bricks as the part of the longest bar; at least one for what is there.
size_t length_of(int64_t count, int64_t most, size_t room) {
  if (count <= 0 || most <= 0) return 0;
  const double part = static_cast<double>(count) / static_cast<double>(most);
  return std::clamp<size_t>(static_cast<size_t>(part * static_cast<double>(room) + 0.5), 1, room);
}

}  // namespace

bool has_unicode(const std::function<const char*(const char*)>& variable) {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = variable(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string locale = lowered(value);
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

std::vector<std::string> render_forecast(const ForecastView& view, size_t width, bool unicode) {
  const Bricks& bricks = unicode ? kBlocks : kAscii;
  const size_t bins = std::max<size_t>(view.jobs.size(), 1);
  const Millis length = (view.to - view.from) / static_cast<int64_t>(bins);
  int64_t most = 0;
  std::vector<std::string> labels;
  std::vector<std::string> counts;
  size_t widest = 0;
  for (size_t i = 0; i < view.jobs.size(); ++i) {
    most = std::max(most, view.jobs[i] + view.scheduled[i]);
    labels.push_back(label_of(view.from + length * static_cast<int64_t>(i), length));
    counts.push_back(shown_count(view.jobs[i], view.scheduled[i]));
    widest = std::max(widest, counts.back().size());
  }
  std::vector<std::string> lines;
  const auto add = [&](const std::string& line) { lines.push_back(cut_to_columns(line, width)); };
  add(fmt::format(
      "{}: {} due within {}", view.topic.empty() ? "all topics" : printable(view.topic, kShownTopic),
      shown_count(sum_of(view.jobs), sum_of(view.scheduled)), format_duration(view.to - view.from)));
  for (size_t i = 0; i < view.jobs.size(); ++i) {
    const size_t around = labels[i].size() + widest + 4;
    const size_t room = std::max(width > around ? width - around : 0, kLeastBar);
    const int64_t all = view.jobs[i] + view.scheduled[i];
    size_t bar = length_of(all, most, room);
    // Both kinds are seen where both are.
    if (view.jobs[i] > 0 && view.scheduled[i] > 0) bar = std::max<size_t>(bar, 2);
    size_t of_jobs = view.scheduled[i] == 0 ? bar : length_of(view.jobs[i], all, bar);
    if (view.scheduled[i] > 0 && of_jobs == bar) --of_jobs;
    add(fmt::format("{}  {}{}{}  {}", labels[i], repeated(bricks.job, of_jobs),
                    repeated(bricks.occurrence, bar - of_jobs), std::string(room - std::min(room, bar), ' '),
                    counts[i]));
  }
  add(fmt::format("UTC; {} stored jobs  {} occurrences of schedules to come", bricks.job, bricks.occurrence));
  if (!view.has_all_scheduled) add("There are more occurrences than could be counted.");
  if (view.resolution > length / 10)
    add(fmt::format("The edges of the bars may be off by {}.", format_duration(view.resolution)));
  return lines;
}

// The verb forecast.

namespace {

std::string list_as_json(const std::vector<int64_t>& counts) {
  std::string out;
  json::Writer json(out);
  json.begin_array();
  for (const int64_t count : counts) json.number(count);
  json.end_array();
  return out;
}

std::vector<int64_t> numbers_of(const resp::Value& map, std::string_view field) {
  std::vector<int64_t> numbers;
  const resp::Value* const list = map.find(field);
  if (list == nullptr) return numbers;
  for (const resp::Value& item : list->items) numbers.push_back(number_in(item).value_or(0));
  return numbers;
}

Error about_option(std::string_view option, const Error& error) {
  return {error.code, {}, fmt::format("{}: {}", option, error.detail)};
}

class ForecastVerb final : public Verb {
 public:
  std::string_view name() const override { return "forecast"; }
  std::string_view help() const override { return "Chart how many jobs fall due, and when"; }

  void add_options(CLI::App& app) override {
    app.add_option("TOPIC", topic_, "Only of this topic");
    app.add_option("--from", from_, "The beginning: 2030-01-31T08:00:00Z or Unix seconds; default now");
    CLI::Option* const to = app.add_option("--to", to_, "The end");
    app.add_option("--for", for_, "The length instead of the end; default 24h")
        ->type_name("DURATION")
        ->excludes(to);
    app.add_option("--bins", bins_, "The number of bars; default 24")
        ->check(CLI::Range(1U, Limits::kForecastBins));
    app.footer(
        "Examples:\n  delayq forecast\n  delayq forecast order --for 1h --bins 60\n"
        "  delayq forecast --from 2030-01-31T00:00:00Z --for 7d --bins 7");
  }

  Status run(const Session& session) override {
    Words command{"FORECAST"};
    append_option(command, "TOPIC", topic_);
    if (Status status = append_times(session, command); !status) return status;
    append_option(command, "BINS", std::to_string(bins_));
    const Result<resp::Value> reply = session.ask(command);
    if (!reply && reply.error().code == ErrorCode::kForbidden && !topic_) {
      Error error = reply.error();
      error.detail += ". Name one of its topics: delayq forecast TOPIC";
      return error;
    }
    if (!reply) return reply.error();
    ForecastView view{.topic = topic_.value_or(std::string()),
                      .from = from_unix_ms(number_of(*reply, "from_ms")),
                      .to = from_unix_ms(number_of(*reply, "to_ms")),
                      .resolution = Millis{number_of(*reply, "resolution_ms")},
                      .jobs = numbers_of(*reply, "bins"),
                      .scheduled = numbers_of(*reply, "scheduled"),
                      .has_all_scheduled = number_of(*reply, "scheduled_complete") != 0};
    if (view.jobs.empty() || view.jobs.size() != view.scheduled.size()) return unexpected_reply();
    show(session, view);
    return {};
  }

 private:
  /// --for counts from the server's clock.
  Status append_times(const Session& session, Words& command) const {
    std::optional<Moment> from;
    if (from_) {
      const Result<Moment> parsed = parse_moment(*from_);
      if (!parsed) return about_option("--from", parsed.error());
      from = *parsed;
    }
    std::optional<Moment> to;
    if (to_) {
      const Result<Moment> parsed = parse_moment(*to_);
      if (!parsed) return about_option("--to", parsed.error());
      to = *parsed;
    }
    if (for_) {
      const Result<Millis> length = parse_duration(*for_);
      if (!length) return about_option("--for", length.error());
      if (*length <= Millis::zero()) return invalid("--for: expected a length of time above 0, like 1h");
      if (!from) {
        const Result<resp::Value> server = session.ask({"SERVER"});
        if (!server) return server.error();
        from = from_unix_ms(number_of(*server, "now_ms"));
      }
      to = *from + *length;
    }
    if (from && to && *to <= *from) return invalid("--to: must be after --from");
    if (to && !from && *to <= session.world.now()) return invalid("--to: is in the past; give --from, too");
    if (from) append_option(command, "FROM", format_moment(*from));
    if (to) append_option(command, "TO", format_moment(*to));
    return {};
  }

  static void show(const Session& session, const ForecastView& view) {
    if (session.json) {
      session.say_json(json::Object()
                           .text("from", format_moment(view.from))
                           .text("to", format_moment(view.to))
                           .number("resolution_ms", view.resolution.count())
                           .raw("bins", list_as_json(view.jobs))
                           .raw("scheduled", list_as_json(view.scheduled))
                           .boolean("scheduled_complete", view.has_all_scheduled)
                           .finish());
      return;
    }
    const size_t width = session.world.out_is_terminal ? Terminal::size().width : kChartWidth;
    for (const std::string& line : render_forecast(view, width, has_unicode(session.world.variable)))
      session.world.out << line << "\n";
  }

  std::optional<std::string> topic_, from_, to_, for_;
  uint32_t bins_ = 24;
};

}  // namespace

void add_forecast_verb(Verbs& verbs) { verbs.push_back(std::make_unique<ForecastVerb>()); }

}  // namespace delayq::cli
