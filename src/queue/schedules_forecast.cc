#include <algorithm>
#include <utility>

#include "queue/schedules.h"

namespace delayq {

namespace {

/// What one step of a forecast does: it reads a page of schedules, or counts occurrences.
constexpr uint32_t kSchedulesPerPage = 100;
constexpr uint32_t kForecastStep = 500;
/// How many occurrences it counts in all.
constexpr uint32_t kForecastMost = 1'000'000;

}  // namespace

/// A forecast in the making: walks through all schedules, some occurrences at a time.
struct Schedules::Forecasting {
  std::string topic;
  std::vector<std::string> topics;
  Moment from{};
  Moment to{};
  ForecastReport report;
  Reply<ForecastReport> reply;
  std::vector<ScheduleView> schedules{};  ///< of the page; the last is next
  std::string after{};
  bool has_more = true;
  std::optional<Recurrence> rule{};  ///< of the last one
  Moment at{};                       ///< the occurrence before, of the last one
  uint64_t counted = 0;              ///< of the last one
  uint64_t total = 0;
};

// Here, where the type of all members is complete.
Schedules::Schedules(Context& context, Admission& admission, Intake& intake, Random random)
    : context_(context),
      admission_(admission),
      intake_(intake),
      random_(random),
      run_ids_(Random{random_.next()}) {}

Schedules::~Schedules() = default;

void Schedules::forecast(const ForecastRequest& request, TopicPatterns topics, Forecast jobs,
                         Reply<ForecastReport> reply) {
  auto work = std::make_unique<Forecasting>();
  work->topic = request.topic;
  work->topics.assign(topics.begin(), topics.end());
  work->from = request.from;
  work->to = request.to;
  work->report.jobs = std::move(jobs);
  work->report.scheduled.resize(request.bins);
  work->reply = std::move(reply);
  forecasts_.push_back(std::move(work));
}

bool Schedules::poll() {
  if (forecasts_.empty()) return false;
  // One step of one forecast, so that other clients are served in between.
  std::unique_ptr<Forecasting> work = std::move(forecasts_.front());
  forecasts_.pop_front();
  forecast_some(std::move(work));
  return true;
}

void Schedules::forecast_page(std::unique_ptr<Forecasting> work) {
  const std::string after = work->after;
  context_.engine.list_schedules(
      context_.now, {.after = after, .limit = kSchedulesPerPage},
      [this, work = std::move(work)](Result<SchedulePage> page) mutable {
        if (!page.ok()) return context_.refuse(work->reply, in_verb("forecast", page.error()));
        work->has_more = page->has_more && !page->schedules.empty();
        if (work->has_more) work->after = page->schedules.back().name;
        for (StoredSchedule& stored : page->schedules) {
          ScheduleView seen = view(std::make_shared<StoredSchedule>(std::move(stored)));
          const bool is_wanted = work->topic.empty() || seen.spec.topic == work->topic;
          if (seen.next < work->to && is_wanted && covers(work->topics, seen.spec.topic)) {
            work->schedules.push_back(std::move(seen));
          }
        }
        forecasts_.push_back(std::move(work));
      });
}

void Schedules::forecast_some(std::unique_ptr<Forecasting> work) {
  for (uint32_t step = 0; step < kForecastStep && !work->schedules.empty(); ++step) {
    if (work->total >= kForecastMost) {
      work->report.has_all_scheduled = false;
      work->schedules.clear();
      work->has_more = false;
      break;
    }
    const ScheduleView& seen = work->schedules.back();
    if (work->counted == 0) {
      const Result<Recurrence> rule = recurrence_of(seen.spec, seen.progress.created);
      work->rule = rule.ok() ? std::optional(*rule) : std::nullopt;
      // Occurrences long before the range need not be walked through.
      work->at = std::max(seen.next, work->from - Limits::kMaxJitter) - Millis{1};
    }
    const std::optional<Moment> next = work->rule ? work->rule->next_after(work->at) : std::nullopt;
    const bool is_over = !next || *next >= work->to || (seen.spec.end && *next > *seen.spec.end) ||
                         (seen.spec.runs && seen.progress.made + work->counted >= *seen.spec.runs);
    if (is_over) {
      work->schedules.pop_back();
      work->counted = 0;
      continue;
    }
    work->at = *next;
    ++work->counted;
    ++work->total;
    const Moment due = due_of(seen.spec, *next);
    if (due < work->from || due >= work->to) continue;
    const auto width = static_cast<double>((work->to - work->from).count());
    const auto bin = static_cast<size_t>(static_cast<double>((due - work->from).count()) *
                                         static_cast<double>(work->report.scheduled.size()) / width);
    ++work->report.scheduled[std::min(bin, work->report.scheduled.size() - 1)];
  }
  if (!work->schedules.empty()) return forecasts_.push_back(std::move(work));
  if (work->has_more) return forecast_page(std::move(work));
  Reply<ForecastReport> reply = std::move(work->reply);
  context_.answer(reply, Result{std::move(work->report)});
}

}  // namespace delayq
