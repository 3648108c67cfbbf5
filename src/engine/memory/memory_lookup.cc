// The verbs of MemoryEngine that only read.
#include <limits>
#include <tuple>

#include "engine/memory/job_table.h"
#include "engine/memory/memory_engine.h"

namespace delayq {

namespace {

constexpr uint32_t kJobsSeenPerPage = 1'000;
constexpr uint64_t kBytesPerPage = uint64_t{8} << 20;  // of bodies

TopicCounts counts_of(const memory::JobTable::Topic& topic) {
  TopicCounts counts;
  for (size_t state = 0; state < kJobStateCount; ++state) counts.by_state[state] = topic.states[state].size();
  const memory::StoredJob* first = nullptr;
  for (const auto& ready : topic.ready) {
    if (ready.empty()) continue;
    const memory::StoredJob* candidate = ready.begin()->second;
    if (first == nullptr ||
        std::tie(candidate->priority, candidate->due) < std::tie(first->priority, first->due)) {
      first = candidate;
    }
  }
  if (first != nullptr) counts.oldest_ready = first->due;
  const auto& reserved = topic.in(JobState::kReserved);
  if (!reserved.empty()) counts.oldest_lease = reserved.begin()->second->handed_over;
  return counts;
}

bool matches(const ListRequest& request, const memory::StoredJob& job) {
  return std::string_view{job.id}.substr(0, request.id_prefix.size()) == request.id_prefix &&
         job.outcome.find(request.outcome_contains) != std::string::npos && request.due.has(job.due);
}

}  // namespace

void MemoryEngine::get(Moment now, const JobRef& job, Reply<std::optional<FoundJob>> reply) {
  catch_up(now);
  std::optional<FoundJob> found;
  if (const StoredJob* stored = jobs_.find(job.topic, job.id)) {
    found.emplace();
    found->job = memory::copy_job(*stored, true, found->storage);
    if (stored->state == JobState::kReserved)
      found->lease = found->storage.copy(memory::lease_text(stored->lease));
  }
  answer<std::optional<FoundJob>>(reply, std::move(found));
}

void MemoryEngine::locate(Moment now, std::string_view id, Among among,
                          Reply<std::vector<std::string>> reply) {
  catch_up(now);
  std::vector<std::string> names;
  if (among == Among::kLive) {
    const memory::JobTable::Names& topics = jobs_.topics_of(id);
    names.assign(topics.begin(), topics.end());
  } else {
    for (const auto& [name, topic] : jobs_.topics()) {
      if (topic.jobs.contains(id)) names.push_back(name);
    }
  }
  answer<std::vector<std::string>>(reply, std::move(names));
}

void MemoryEngine::list(Moment now, const ListRequest& request, Reply<JobPage> reply) {
  catch_up(now);
  const std::optional<uint64_t> last_seen = request.cursor.empty() ? 0 : memory::parse_number(request.cursor);
  if (!last_seen) {
    answer<JobPage>(
        reply,
        in_verb("list", invalid("cursor", "cursor: not a cursor of this listing; start again without one")));
    return;
  }
  JobPage page;
  if (const memory::JobTable::Topic* topic = jobs_.find_topic(request.topic)) {
    const memory::JobTable::InOrder& in_state = topic->in(request.state);
    uint32_t seen = 0;
    uint64_t bytes = 0;
    auto next = in_state.upper_bound(*last_seen);
    for (; next != in_state.end() && seen < kJobsSeenPerPage && page.jobs.size() < request.limit &&
           bytes < kBytesPerPage;
         ++next, ++seen) {
      page.cursor = std::to_string(next->first);
      if (!matches(request, *next->second)) continue;
      page.jobs.push_back(memory::copy_job(*next->second, request.with_bodies, page.storage));
      bytes += page.jobs.back().body.size();
    }
    if (next == in_state.end()) page.cursor.clear();
  }
  answer<JobPage>(reply, std::move(page));
}

void MemoryEngine::counts(Moment now, std::string_view topic, Reply<TopicCounts> reply) {
  catch_up(now);
  TopicCounts counts;
  if (const memory::JobTable::Topic* found = jobs_.find_topic(topic)) counts = counts_of(*found);
  if (topic.empty()) {
    for (const auto& [name, each] : jobs_.topics()) {
      for (size_t state = 0; state < kJobStateCount; ++state)
        counts.by_state[state] += each.states[state].size();
    }
  }
  answer<TopicCounts>(reply, counts);
}

void MemoryEngine::topics(Moment now, std::string_view cursor, uint32_t limit, Reply<TopicPage> reply) {
  catch_up(now);
  TopicPage page;
  auto next = jobs_.topics().upper_bound(cursor);
  for (; next != jobs_.topics().end() && page.topics.size() < limit; ++next) {
    page.topics.push_back({next->first, counts_of(next->second)});
  }
  if (next != jobs_.topics().end() && !page.topics.empty()) page.cursor = page.topics.back().topic;
  answer<TopicPage>(reply, std::move(page));
}

void MemoryEngine::forecast(Moment now, const ForecastRequest& request, Reply<Forecast> reply) {
  catch_up(now);
  Forecast forecast;
  forecast.bins.resize(request.bins);
  const auto from = jobs_.alarms().lower_bound({request.from, 0});
  for (auto next = from; next != jobs_.alarms().end() && next->first.first < request.to; ++next) {
    const StoredJob& job = *next->second;
    if (job.state != JobState::kDelayed || forecast.bins.empty()) continue;
    if (!request.topic.empty() && job.topic != request.topic) continue;
    // A century in milliseconds times the largest allowed number of bins is far below 2^64.
    const auto offset = static_cast<uint64_t>((job.due - request.from).count());
    const auto span = static_cast<uint64_t>((request.to - request.from).count());
    ++forecast.bins[offset * request.bins / span];
  }
  answer<Forecast>(reply, std::move(forecast));
}

EngineUsage MemoryEngine::usage() const {
  EngineUsage usage;
  usage.jobs = jobs_.size();
  usage.topics = jobs_.topics().size();
  usage.schedules = schedules_.size();
  usage.memory_bytes = jobs_.size() * sizeof(StoredJob);
  usage.disk_free = std::numeric_limits<uint64_t>::max();
  return usage;
}

}  // namespace delayq
