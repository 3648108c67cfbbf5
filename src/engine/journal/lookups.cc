// get, locate, list, counts, topics, forecast, settings: looking around.
#include <algorithm>
#include <charconv>

#include "engine/journal/journal_engine.h"
#include "engine/journal/lease_text.h"

namespace delayq::journal {

namespace {

/// A page looks at no more than this many jobs, and brings no more than this into memory.
constexpr uint32_t kMostJobsPerPage = 2000;
constexpr uint64_t kMostBytesPerPage = 8u << 20;
constexpr std::string_view kDamagedJob = "its record on disk is damaged";

TopicCounts counts_of(const Topic& topic) {
  TopicCounts counts;
  for (size_t state = 0; state < kJobStateCount; ++state) counts.by_state[state] = topic.chains[state].count;
  const ReadyKey* first = nullptr;
  for (const absl::btree_set<ReadyKey>& ready : topic.ready) {
    if (!ready.empty() && (first == nullptr || *ready.begin() < *first)) first = &*ready.begin();
  }
  if (first != nullptr) counts.oldest_ready = from_unix_ms(static_cast<int64_t>(first->due_ms));
  return counts;
}

std::optional<uint64_t> parse_cursor(std::string_view text) {
  uint64_t cursor = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cursor);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return cursor;
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

void JournalEngine::list(Moment now, const ListRequest& request, Reply<JobPage> reply) {
  if (!failure_) make_due(now);
  const TopicNumber number = store_.topics.find(request.topic);
  Slot slot = number == kNoTopic ? kNoSlot : store_.topics[number].chain(request.state).first;
  if (!request.cursor.empty()) {
    const auto cursor = parse_cursor(request.cursor);
    const auto at = cursor ? store_.topics.cursors.take(*cursor) : std::nullopt;
    if (!at) {
      return answer(std::move(reply),
                    Result<JobPage>(Error{ErrorCode::kInvalid, "list",
                                          "cursor: it has expired, start again without one"}));
    }
    slot = *at;
    // A cursor of another listing than the one asked for leads nowhere.
    if (slot != kNoSlot &&
        (store_.jobs[slot].topic != number || store_.jobs[slot].state() != request.state)) {
      slot = kNoSlot;
    }
  }
  const bool is_filtered = !request.id_prefix.empty() || !request.outcome_contains.empty();
  const uint32_t most = is_filtered ? kMostJobsPerPage : std::min(request.limit, kMostJobsPerPage);
  std::vector<Snapshot> jobs;
  std::vector<Location> wanted;
  std::vector<Slot> slots;
  for (uint64_t bytes = 0; slot != kNoSlot && jobs.size() < most; slot = store_.jobs[slot].chain_next) {
    bytes += store_.jobs[slot].location.size;
    if (!jobs.empty() && bytes > kMostBytesPerPage) break;
    jobs.push_back(snapshot(slot));
    add_locations(slot, wanted);
  }
  const uint64_t cursor = slot == kNoSlot ? 0 : store_.topics.cursors.add(slot);
  auto then = [this, cursor, jobs = std::move(jobs), prefix = std::string(request.id_prefix),
               text = std::string(request.outcome_contains), topic = std::string(request.topic),
               with_bodies = request.with_bodies,
               reply = std::move(reply)](RecordReader::Found found) mutable {
    JobPage page;
    if (!found.status.ok()) return answer(std::move(reply), Result<JobPage>(found.status.error()));
    page.storage = std::move(found.storage);
    if (cursor != 0) page.cursor = std::to_string(cursor);
    for (size_t i = 0; i < jobs.size(); ++i) {
      Job job;
      if (!fill_job(job, jobs[i], found.records[2 * i], found.records[2 * i + 1])) {
        // Its id was in the record. What is known is shown, so that listings and counts agree.
        job.topic = page.storage.copy(topic);
        job.outcome = kDamagedJob;
        job.state = jobs[i].state.state;
      }
      if (!job.id.starts_with(prefix) || job.outcome.find(text) == std::string_view::npos) continue;
      if (!with_bodies) job.body = {};
      page.jobs.push_back(job);
    }
    answer(std::move(reply), Result<JobPage>(std::move(page)));
  };
  reader_.read(wanted, std::move(then));
}

void JournalEngine::counts(Moment now, std::string_view topic, Reply<TopicCounts> reply) {
  if (!failure_) make_due(now);
  if (topic.empty())
    return answer(std::move(reply), Result<TopicCounts>(TopicCounts{store_.topics.totals(), {}}));
  const TopicNumber number = store_.topics.find(topic);
  answer(std::move(reply),
         Result<TopicCounts>(number == kNoTopic ? TopicCounts{} : counts_of(store_.topics[number])));
}

void JournalEngine::topics(Moment now, std::string_view cursor, uint32_t limit, Reply<TopicPage> reply) {
  if (!failure_) make_due(now);
  TopicPage page;
  const std::vector<TopicNumber> numbers = store_.topics.page(cursor, limit);
  for (const TopicNumber number : numbers) {
    const Topic& topic = store_.topics[number];
    if (topic.has_jobs()) page.topics.push_back({topic.name, counts_of(topic)});
  }
  if (!numbers.empty() && numbers.size() == limit) page.cursor = store_.topics[numbers.back()].name;
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
