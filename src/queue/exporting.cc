#include "queue/exporting.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "core/encoding.h"

namespace delayq {

namespace {

/// A page ends when it has this many bytes, or took this many steps: topics without jobs take steps, too.
constexpr uint64_t kMostBytes = uint64_t{1} << 20;
constexpr uint32_t kMostSteps = 512;
/// The number of jobs in the first request of a page, since the size of bodies is not known. Later requests
/// use the average size so far to ask for as many as fit.
constexpr uint32_t kFirstJobs = 64;
/// A request for schedules, most of which may belong to topics that were not asked for.
constexpr uint32_t kStepsOfSchedules = 64;
constexpr uint32_t kSchedulesAtOnce = 1'000;
/// What the cursor begins with among the schedules; the name of the last one follows.
constexpr std::string_view kScheduleCursor = "s.";

/// In the order of a job's life: a job that moves forward during the export is exported twice, not missed.
constexpr std::array kStates{JobState::kDelayed, JobState::kReady, JobState::kReserved, JobState::kDone,
                             JobState::kDead};

/// The position of an export: among the schedules; or the topic, the state whose jobs are listed, and the
/// engine's cursor there.
struct Position {
  std::optional<std::string> schedule{};  ///< the last one; empty: before the first
  std::string topic{};                    ///< empty: before the first
  size_t state = 0;                       ///< index into kStates
  std::string cursor{};
};

/// The cursor for clients: opaque, and safe in URLs and headers for any topic name.
std::string to_text(const Position& position) {
  if (position.schedule) return to_hex(fmt::format("{}{}", kScheduleCursor, *position.schedule));
  return to_hex(
      fmt::format("{}.{}.{}{}", position.state, position.cursor.size(), position.cursor, position.topic));
}

/// Removes a number and the dot after it from the front of `text`.
std::optional<size_t> take_number(std::string_view& text) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto size = static_cast<size_t>(end - text.data());
  if (error != std::errc{} || size >= text.size() || *end != '.') return std::nullopt;
  text.remove_prefix(size + 1);
  return number;
}

std::optional<Position> parse_position(std::string_view text) {
  const std::optional<std::string> plain = from_hex(text);
  if (!plain) return std::nullopt;
  std::string_view rest = *plain;
  Position position;
  if (rest.starts_with(kScheduleCursor)) {
    position.schedule = rest.substr(kScheduleCursor.size());
    if (!position.schedule->empty() && !check_schedule_name(*position.schedule)) return std::nullopt;
    return position;
  }
  const std::optional<size_t> state = take_number(rest);
  const std::optional<size_t> size = state ? take_number(rest) : std::nullopt;
  if (!size || *state > kStates.size() || *size > rest.size()) return std::nullopt;
  position.state = *state;
  position.cursor = rest.substr(0, *size);
  position.topic = rest.substr(*size);
  if (!check_topic(position.topic).ok()) return std::nullopt;
  return position;
}

}  // namespace

struct Exporting::Walk {
  std::string only_topic;
  std::optional<JobState> only_state;
  uint32_t limit = 0;
  Position position;
  ExportPage page;
  uint64_t bytes = 0;
  uint64_t jobs = 0;  ///< number of jobs in the page
  uint32_t steps = 0;
  Reply<ExportPage> reply;
  Steps in_order;

  uint32_t jobs_to_ask_for() const {
    const auto left = static_cast<uint32_t>(limit - page.items.size());
    if (jobs == 0) return std::min(left, kFirstJobs);
    const uint64_t fitting = (kMostBytes - bytes) / (bytes / jobs) + 1;
    return static_cast<uint32_t>(std::min<uint64_t>(left, fitting));
  }
  bool is_full() const { return page.items.size() >= limit || bytes >= kMostBytes || steps >= kMostSteps; }
  /// Moves to the next requested state. Returns false when the topic has none left.
  bool find_state() {
    while (position.state < kStates.size() && only_state && kStates[position.state] != *only_state)
      ++position.state;
    return position.state < kStates.size();
  }
};

void Exporting::page(const ExportRequest& request, Reply<ExportPage> reply) {
  Status status = check_count("count", request.limit, Limits::kPageJobs);
  if (status.ok() && !request.topic.empty()) status = check_topic(request.topic);
  auto walk = std::make_unique<Walk>();
  if (status.ok() && !request.cursor.empty()) {
    std::optional<Position> position = parse_position(request.cursor);
    const bool is_elsewhere =
        position && !position->schedule && !request.topic.empty() && position->topic != request.topic;
    if (!position || is_elsewhere) {
      status = invalid("cursor", "cursor: not one that an export has answered");
    } else {
      walk->position = std::move(*position);
    }
  }
  if (!status) return context_.refuse(reply, in_verb("export", status.error()));
  walk->only_topic = request.topic;
  walk->only_state = request.state;
  walk->limit = request.limit;
  walk->reply = std::move(reply);
  walk->in_order = context_.begin_steps();
  if (walk->position.schedule) return schedules(std::move(walk));
  if (!request.cursor.empty()) return step(std::move(walk));
  if (request.topic.empty()) add_settings(*walk, kDefaultsName);
  walk->position.schedule.emplace();
  schedules(std::move(walk));
}

void Exporting::schedules(std::unique_ptr<Walk> walk) {
  if (walk->only_state) return add_schedules(std::move(walk), {});
  if (walk->is_full()) return answer(*walk, false);
  walk->steps += kStepsOfSchedules;
  const bool has_all = walk->only_topic.empty();
  const std::string after = *walk->position.schedule;
  const ScheduleListRequest request{
      .after = after,
      .limit = has_all ? static_cast<uint32_t>(walk->limit - walk->page.items.size()) : kSchedulesAtOnce,
      .max_bytes = kMostBytes - walk->bytes};
  schedules_.read_page(request, [this, walk = std::move(walk)](Result<ScheduleViews> page) mutable {
    if (!page.ok()) return context_.refuse(walk->reply, in_verb("export", page.error()));
    add_schedules(std::move(walk), std::move(*page));
  });
}

void Exporting::add_schedules(std::unique_ptr<Walk> walk, ScheduleViews page) {
  for (ScheduleView& seen : page.schedules) {
    // What follows on a full page is read again for the next one.
    if (walk->is_full()) return answer(*walk, false);
    walk->position.schedule = std::string(seen.spec.name);
    if (!walk->only_topic.empty() && seen.spec.topic != walk->only_topic) continue;
    walk->bytes += seen.storage->definition.size() + sizeof seen;
    ExportItem& item = walk->page.items.emplace_back();
    item.schedule = std::make_shared<const ScheduleView>(std::move(seen));
  }
  if (!page.cursor.empty()) return schedules(std::move(walk));
  walk->position = {};
  if (walk->only_topic.empty()) return next_topic(std::move(walk), {});
  std::string topic = walk->only_topic;
  enter_topic(std::move(walk), std::move(topic));
}

void Exporting::step(std::unique_ptr<Walk> walk) {
  if (walk->is_full()) return answer(*walk, false);
  if (!walk->find_state()) {
    if (!walk->only_topic.empty()) return answer(*walk, true);
    std::string after = walk->position.topic;
    return next_topic(std::move(walk), std::move(after));
  }
  ++walk->steps;
  ListRequest request;
  request.state = kStates[walk->position.state];
  request.limit = walk->jobs_to_ask_for();
  request.with_bodies = true;
  const std::string cursor = std::exchange(walk->position.cursor, {});
  request.cursor = cursor;
  const std::string topic = walk->position.topic;
  request.topic = topic;
  context_.engine.list(context_.now, request, [this, walk = std::move(walk)](Result<JobPage> page) mutable {
    if (!page.ok()) return context_.refuse(walk->reply, in_verb("export", page.error()));
    add_jobs(std::move(walk), std::move(*page));
  });
}

void Exporting::add_jobs(std::unique_ptr<Walk> walk, JobPage page) {
  for (const Job& job : page.jobs) {
    walk->bytes += job.body.size() + job.id.size() + sizeof job;
    ++walk->jobs;
    walk->page.items.push_back({job, {}});
  }
  if (!page.jobs.empty()) walk->page.storage.push_back(std::move(page.storage));
  walk->position.cursor = std::move(page.cursor);
  if (walk->position.cursor.empty()) ++walk->position.state;
  step(std::move(walk));
}

/// The next topic comes from the engine (topics with jobs) or from the settings, whichever sorts first.
void Exporting::next_topic(std::unique_ptr<Walk> walk, std::string after) {
  if (walk->is_full() && !after.empty()) return answer(*walk, false);
  ++walk->steps;
  const std::string cursor = after;
  context_.engine.topics(
      context_.now, cursor, 1,
      [this, walk = std::move(walk), after = std::move(after)](Result<TopicPage> page) mutable {
        if (!page.ok()) return context_.refuse(walk->reply, in_verb("export", page.error()));
        const std::vector<std::string> named = settings_.names_after(after, 1);
        std::string next = page->topics.empty() ? page->cursor : page->topics.front().topic;
        if (!named.empty() && (next.empty() || named.front() < next)) next = named.front();
        if (next.empty()) return answer(*walk, true);
        // The defaults are stored like the settings of a topic, and were exported first.
        if (next == kDefaultsName) return next_topic(std::move(walk), std::move(next));
        enter_topic(std::move(walk), std::move(next));
      });
}

void Exporting::enter_topic(std::unique_ptr<Walk> walk, std::string topic) {
  add_settings(*walk, topic);
  walk->position = {.topic = std::move(topic)};
  step(std::move(walk));
}

void Exporting::add_settings(Walk& walk, std::string_view name) const {
  if (walk.only_state) return;
  const Settings& own = settings_.own(name);
  if (own == Settings{}) return;
  Arena storage;
  ExportItem& item = walk.page.items.emplace_back();
  item.job.topic = storage.copy(name);
  item.settings = own;
  walk.page.storage.push_back(std::move(storage));
}

void Exporting::answer(Walk& walk, bool is_over) {
  if (!is_over) walk.page.cursor = to_text(walk.position);
  context_.answer(walk.reply, Result{std::move(walk.page)});
}

}  // namespace delayq
