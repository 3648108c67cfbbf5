// The verbs that read: get, locate, list, counts, topics, forecast; and settings.
#include <algorithm>

#include "engine/journal/job_table.h"
#include "engine/journal/journal_engine.h"

namespace delayq::journal {

namespace {

/// A page visits at most this many jobs and reads at most this many bytes.
constexpr uint32_t kMostJobsPerPage = 2000;
constexpr uint64_t kMostBytesPerPage = 8u << 20;
/// The same for jobs that are not in the window: their entries in RAM say so, and no record is read.
constexpr uint32_t kMostPassedPerPage = 20'000;
/// At most this many places at which a filtered page may end. The unused ones are dropped with the page.
constexpr uint64_t kMostStops = 64;
constexpr std::string_view kDamagedJob = "its record on disk is damaged";

TopicCounts counts_of(const Store& store, const Topic& topic) {
  TopicCounts counts;
  for (size_t state = 0; state < kJobStateCount; ++state) counts.by_state[state] = topic.chains[state].count;
  const ReadyKey* first = nullptr;
  for (const absl::btree_set<ReadyKey>& ready : topic.ready) {
    if (!ready.empty() && (first == nullptr || *ready.begin() < *first)) first = &*ready.begin();
  }
  if (first != nullptr) counts.oldest_ready = from_unix_ms(static_cast<int64_t>(first->due_ms));
  // Leases from before the start come first, and of these the time is not known.
  const Slot held = topic.chains[static_cast<size_t>(JobState::kReserved)].first;
  if (const Extra* const extra = held == kNoSlot ? nullptr : store.jobs.find_extra(held);
      extra != nullptr && extra->handed_over_s != 0)
    counts.oldest_lease = Moment{std::chrono::seconds{extra->handed_over_s}};
  return counts;
}

}  // namespace

void JournalEngine::get(Moment now, const JobRef& job, Reply<std::optional<FoundJob>> reply) {
  using Answer = std::optional<FoundJob>;
  if (!failure_) make_due(now);
  const Slot slot = store_.find(job.topic, job.id);
  if (slot == kNoSlot) return answer(std::move(reply), Result<Answer>(Answer{}));
  std::vector<Location> wanted;
  add_locations(slot, wanted);
  auto then = [this, before = snapshot(slot), reply = std::move(reply)](RecordReader::Found found) mutable {
    FoundJob result;
    if (!found.status.ok()) return answer(std::move(reply), Result<Answer>(found.status.error()));
    if (!fill_job(result.job, before, found.records[0], found.records[1]) ||
        result.job.outcome == kDamagedOutcome) {
      return answer(std::move(reply),
                    Result<Answer>(Error{ErrorCode::kCorrupt, "get", "the job's record on disk is damaged"}));
    }
    result.storage = std::move(found.storage);
    if (result.job.state == JobState::kReserved) {
      const LeaseText text = format_lease({before.state.seq, before.state.lease});
      result.lease = result.storage.copy({text.data(), text.size()});
    }
    answer(std::move(reply), Result<Answer>(Answer(std::move(result))));
  };
  reader_.read(wanted, std::move(then));
}

void JournalEngine::held(Moment now, std::span<const LeaseRef> leases, bool with_bodies,
                         Reply<HeldJobs> reply) {
  if (!failure_) make_due(now);
  std::vector<std::pair<size_t, Snapshot>> jobs;  // with the place of the lease
  std::vector<Location> wanted;
  uint64_t bytes = 0;
  for (size_t i = 0; i < leases.size() && (with_bodies || bytes < kMostBytesPerPage); ++i) {
    const Slot slot = find_lease(leases[i], std::nullopt);
    if (slot == kNoSlot) continue;
    bytes += store_.jobs[slot].location.size;
    jobs.emplace_back(i, snapshot(slot));
    add_locations(slot, wanted);
  }
  auto then = [this, count = leases.size(), with_bodies, jobs = std::move(jobs),
               reply = std::move(reply)](RecordReader::Found found) mutable {
    if (!found.status.ok()) return answer(std::move(reply), Result<HeldJobs>(found.status.error()));
    HeldJobs result;
    result.jobs.resize(count);
    for (size_t i = 0; i < jobs.size(); ++i) {
      Job job;
      if (!fill_job(job, jobs[i].second, found.records[2 * i], found.records[2 * i + 1])) continue;
      if (!with_bodies) job.body = {};
      result.jobs[jobs[i].first] = job;
    }
    result.storage = std::move(found.storage);
    answer(std::move(reply), Result<HeldJobs>(std::move(result)));
  };
  reader_.read(wanted, std::move(then));
}

void JournalEngine::locate(Moment now, std::string_view id, Among among,
                           Reply<std::vector<std::string>> reply) {
  if (!failure_) make_due(now);
  std::vector<std::string> names;
  for (const Slot slot : store_.ids.find_all(store_.ids.key_of(id))) {
    const Entry& entry = store_.jobs[slot];
    if (among == Among::kAll || is_live(entry.state())) names.push_back(store_.topics[entry.topic].name);
  }
  answer(std::move(reply), Result<std::vector<std::string>>(std::move(names)));
}

Result<Slot> JournalEngine::start_of_page(TopicNumber topic, const ListRequest& request) const {
  if (request.cursor.empty())
    return topic == kNoTopic ? kNoSlot : store_.topics[topic].chain(request.state).first;
  const auto cursor = ListCursors::parse(request.cursor);
  const auto at = cursor ? store_.topics.cursors.find(*cursor) : std::nullopt;
  if (!at) return in_verb("list", invalid("cursor", "cursor: it has expired, start again without one"));
  const bool fits =
      *at == kNoSlot || (store_.jobs[*at].topic == topic && store_.jobs[*at].state() == request.state);
  if (!fits) return in_verb("list", invalid("cursor", "cursor: it belongs to another topic or state"));
  return *at;
}

/// The jobs that a page visits. Which of them pass the filter is known only after they are read, and
/// these may be more than the page can hold. So a filtered page can end at any `stop`; there is one
/// for every `limit` jobs.
struct JournalEngine::LookedAt {
  struct Stop {
    size_t jobs = 0;      ///< visited before it
    uint64_t cursor = 0;  ///< 0: the list ends there
  };
  std::vector<Snapshot> jobs;
  std::vector<Location> wanted;
  std::vector<Stop> stops;
};

JournalEngine::LookedAt JournalEngine::look_at(Slot slot, const ListRequest& request) {
  const bool is_filtered = !request.id_prefix.empty() || !request.outcome_contains.empty();
  const uint64_t most = std::min<uint64_t>(
      kMostJobsPerPage, is_filtered ? kMostStops * uint64_t{request.limit} : request.limit);
  LookedAt page;
  uint64_t bytes = 0;
  uint32_t passed = 0;
  for (; slot != kNoSlot && page.jobs.size() < most && passed < kMostPassedPerPage;
       slot = store_.jobs[slot].chain_next) {
    if (!request.due.has(store_.jobs[slot].due())) {
      ++passed;
      continue;
    }
    bytes += store_.jobs[slot].location.size;
    if (!page.jobs.empty() && bytes > kMostBytesPerPage) break;
    if (!page.jobs.empty() && page.jobs.size() % request.limit == 0)
      page.stops.push_back({page.jobs.size(), store_.topics.cursors.add(slot)});
    page.jobs.push_back(snapshot(slot));
    add_locations(slot, page.wanted);
  }
  page.stops.push_back({page.jobs.size(), slot == kNoSlot ? 0 : store_.topics.cursors.add(slot)});
  return page;
}

void JournalEngine::list(Moment now, const ListRequest& request, Reply<JobPage> reply) {
  if (!failure_) make_due(now);
  const Result<Slot> start = start_of_page(store_.topics.find(request.topic), request);
  if (!start.ok()) return answer(std::move(reply), Result<JobPage>(start.error()));
  LookedAt looked_at = look_at(*start, request);
  const std::vector<Location> wanted = std::move(looked_at.wanted);
  auto then = [this, looked_at = std::move(looked_at), prefix = std::string(request.id_prefix),
               text = std::string(request.outcome_contains), topic = std::string(request.topic),
               with_bodies = request.with_bodies, limit = request.limit,
               reply = std::move(reply)](RecordReader::Found found) mutable {
    JobPage page;
    if (!found.status.ok()) return answer(std::move(reply), Result<JobPage>(found.status.error()));
    page.storage = std::move(found.storage);
    size_t next = 0;
    auto stop = looked_at.stops.begin();
    for (size_t kept = 0; stop != looked_at.stops.end(); ++stop, kept = page.jobs.size()) {
      for (; next < stop->jobs; ++next) {
        Job job;
        if (!fill_job(job, looked_at.jobs[next], found.records[2 * next], found.records[2 * next + 1])) {
          // The id is in the damaged record. Show what is known, so that listings and counts agree.
          job.topic = page.storage.copy(topic);
          job.outcome = kDamagedJob;
          job.state = looked_at.jobs[next].state.state;
        }
        if (!job.id.starts_with(prefix) || job.outcome.find(text) == std::string_view::npos) continue;
        if (!with_bodies) job.body = {};
        page.jobs.push_back(job);
      }
      if (page.jobs.size() <= limit) continue;
      page.jobs.resize(kept);  // these are on the next page
      break;
    }
    end_page(page, looked_at, static_cast<size_t>(stop - looked_at.stops.begin()));
    answer(std::move(reply), Result<JobPage>(std::move(page)));
  };
  reader_.read(wanted, std::move(then));
}

/// `stops` stops were passed: the page continues at the last of these; the other cursors are dropped.
void JournalEngine::end_page(JobPage& page, const LookedAt& looked_at, size_t stops) {
  for (size_t i = 0; i < looked_at.stops.size(); ++i) {
    const uint64_t cursor = looked_at.stops[i].cursor;
    if (i + 1 != stops) {
      store_.topics.cursors.remove(cursor);
    } else if (cursor != 0) {
      page.cursor = std::to_string(cursor);
    }
  }
}

void JournalEngine::counts(Moment now, std::string_view topic, Reply<TopicCounts> reply) {
  if (!failure_) make_due(now);
  if (topic.empty())
    return answer(std::move(reply), Result<TopicCounts>(TopicCounts{store_.topics.totals(), {}}));
  const TopicNumber number = store_.topics.find(topic);
  answer(std::move(reply),
         Result<TopicCounts>(number == kNoTopic ? TopicCounts{} : counts_of(store_, store_.topics[number])));
}

void JournalEngine::topics(Moment now, std::string_view cursor, uint32_t limit, Reply<TopicPage> reply) {
  if (!failure_) make_due(now);
  TopicPage page;
  std::string last{cursor};
  // Topics without jobs (with settings, or recently emptied) are skipped, so the page is
  // filled with other topics.
  for (bool is_more = true; is_more && page.topics.size() < limit;) {
    const uint32_t wanted = limit - static_cast<uint32_t>(page.topics.size());
    const std::vector<TopicNumber> numbers = store_.topics.page(last, wanted);
    for (const TopicNumber number : numbers) {
      const Topic& topic = store_.topics[number];
      if (topic.has_jobs()) page.topics.push_back({topic.name, counts_of(store_, topic)});
    }
    is_more = numbers.size() == wanted;
    if (!numbers.empty()) last = store_.topics[numbers.back()].name;
    if (is_more && page.topics.size() == limit) page.cursor = last;
  }
  answer(std::move(reply), Result<TopicPage>(std::move(page)));
}

void JournalEngine::forecast(Moment now, const ForecastRequest& request, Reply<Forecast> reply) {
  if (!failure_) make_due(now);
  const TopicNumber topic = request.topic.empty() ? kNoTopic : store_.topics.find(request.topic);
  if (!request.topic.empty() && topic == kNoTopic) {
    Forecast nothing;
    nothing.bins.resize(request.bins);
    return answer(std::move(reply), Result<Forecast>(std::move(nothing)));
  }
  answer(std::move(reply), Result<Forecast>(store_.forecast(topic, request)));
}

void JournalEngine::store_settings(std::string_view name, std::string_view settings, Reply<bool> reply) {
  if (failure_) return answer(std::move(reply), Result<bool>(*failure_));
  const TopicNumber number = store_.topics.find_or_add(name);
  Topic& topic = store_.topics[number];
  const Location location =
      log_.append(kHeadStream, RecordType::kSettings, 1 + name.size() + settings.size(),
                  [&](std::span<std::byte> payload, Lsn) {
                    payload[0] = static_cast<std::byte>(name.size());
                    std::memcpy(payload.data() + 1, name.data(), name.size());
                    std::memcpy(payload.data() + 1 + name.size(), settings.data(), settings.size());
                  });
  store_.segments.release(topic.settings_record);
  topic.settings = settings;
  topic.settings_record = settings.empty() ? Location{} : location;
  store_.segments.keep(topic.settings_record);
  if (settings.empty()) store_.segments.find(location.segment)->unsets = true;
  store_.topics.note_idle(number, now_);
  answer_when_durable(std::move(reply), true);
}

void JournalEngine::load_settings(Reply<std::vector<TopicSettings>> reply) {
  std::vector<TopicSettings> all;
  for (const TopicNumber number : store_.topics.page({}, UINT32_MAX)) {
    const Topic& topic = store_.topics[number];
    if (!topic.settings.empty()) all.push_back({topic.name, topic.settings});
  }
  answer(std::move(reply), Result<std::vector<TopicSettings>>(std::move(all)));
}

}  // namespace delayq::journal
