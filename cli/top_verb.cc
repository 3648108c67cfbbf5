// top: what a server does, as it does it.
#include <algorithm>
#include <ostream>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/terminal.h"
#include "cli/top_source.h"
#include "cli/top_view.h"
#include "cli/verb.h"
#include "core/duration.h"
#include "core/limits.h"

namespace delayq::cli {

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
    app.add_option("--interval", interval_, "From one look to the next; 1s when left out");
    app.add_option("--sort", sort_, "What comes first; ready when left out")
        ->check(CLI::IsMember(top_sort_names()));
    app.add_option("--page", page_, "Topics that are asked for at once; 500 when left out")
        ->check(CLI::Range(1U, Limits::kPageJobs));
    app.add_flag("--once", once_, "Two looks, an interval apart, and the end; so also without a terminal");
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
      session.world.out << top_as_json(*snapshot) << "\n";
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

  /// False when that was enough.
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
