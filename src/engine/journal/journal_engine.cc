#include "engine/journal/journal_engine.h"

#include <algorithm>

#include <fmt/format.h>

#include "engine/journal/canary.h"
#include "engine/journal/job_table.h"
#include "engine/journal/recovery.h"

namespace delayq::journal {

namespace {

constexpr uint32_t kPreparePortion = 4096;
constexpr uint32_t kLeaseCounterBits = 40;
constexpr Millis kProbeInterval{1000};
/// Of the jobs that become ready between two polls, so many are named, and so many bytes of them are read.
constexpr size_t kMostDueTold = 2'000;
constexpr uint64_t kMostDueBytes = 4u << 20;

SipKey secret_from(uint64_t seed) {
  Random random(seed);
  const uint64_t low = random.next();
  return {low, random.next()};
}

/// Never 0, which means none.
uint64_t directory_from(uint64_t seed) {
  constexpr uint64_t kOtherThanNonces = 0x6d616e6966657374;
  return Random(seed ^ kOtherThanNonces).next() | 1;
}

}  // namespace

JournalEngine::JournalEngine(Disk& disk, Io& io, JournalOptions options)
    : disk_(disk),
      io_(io),
      options_(options),
      store_(secret_from(options.seed)),
      log_(disk, io, store_.segments, manifest_, {options.segment_bytes}, options.seed),
      reader_(io, log_, store_.segments),
      cleaner_(store_, log_, io, disk, manifest_,
               {options.segment_bytes * 3, options.segment_bytes * 5 / 4, options.disk_reserve * 2}),
      backup_(io, store_.segments) {}

JournalEngine::~JournalEngine() {
  backup_.stop();
  io_.drain();
  const bool is_open = manifest_.directory != 0;
  if (!is_open || failure_) return;
  const auto ignore = [](const Status&) {};
  if (log_.durable_lsn() < log_.head_end_lsn() && log_.commit_head(true, ignore)) io_.drain();
  if (log_.durable_lsn() < log_.head_end_lsn()) return;
  // Write final marks that everything is durable, so that later damage cannot look like a torn end.
  log_.prove_survivors();
  log_.commit_survivors(ignore);
  if (log_.prove_head()) log_.commit_head(true, ignore);
  io_.drain();
  // Record the sizes, so that a segment that is truncated later is noticed. No lane is running, so the
  // manifest may be used here.
  for (const auto& [number, segment] : store_.segments) {
    if (const auto known = manifest_.segments.find(number); known != manifest_.segments.end())
      known->second.least_size = segment->durable;
  }
  static_cast<void>(manifest_.write(disk_));
}

Result<std::unique_ptr<JournalEngine>> JournalEngine::open(Disk& disk, Io& io, JournalOptions options,
                                                           Moment now) {
  std::unique_ptr<JournalEngine> engine(new JournalEngine(disk, io, options));
  Result<std::unique_ptr<Disk::Lock>> lock = disk.lock();
  if (!lock.ok()) return lock.error();
  engine->lock_ = std::move(*lock);

  Result<Recovered> recovered = recover(disk, engine->store_, directory_from(options.seed));
  if (!recovered.ok()) return recovered.error();
  engine->manifest_ = std::move(recovered->manifest);
  engine->recovered_records_ = recovered->records;
  engine->cut_bytes_ = recovered->cut_bytes;
  engine->next_lease_ = uint64_t{recovered->epoch} << kLeaseCounterBits;
  engine->now_ = engine->last_sync_ = now;
  engine->store_.go_live(now);

  // The new epoch must be durable before the first lease of this epoch is given out.
  engine->log_.start(recovered->next_lsn, recovered->epoch, now);
  engine->log_.begin_head();
  Status first;
  engine->log_.commit_head(true, [&first](const Status& status) { first = status; });
  io.drain();
  if (!first.ok()) return first.error();
  if (engine->log_.lacks_room())
    return Error{
        ErrorCode::kDiskFull,
        "journal.open",
        fmt::format("{} has no room for a segment of {} MiB, which every start begins: make room, or set "
                    "journal.segment to less",
                    disk.name(), options.segment_bytes >> 20),
        {}};
  return engine;
}

EngineUsage JournalEngine::usage() const {
  EngineUsage usage;
  usage.jobs = store_.jobs.size();
  usage.topics = store_.topics.size();
  usage.schedules = store_.schedules.size();
  usage.memory_bytes = store_.memory_bytes();
  usage.disk_bytes = store_.segments.occupied_bytes();
  usage.live_bytes = store_.segments.live_bytes();
  usage.disk_free = log_.disk_free();
  usage.lacks_room = log_.lacks_room();
  usage.unsynced_bytes = log_.unsynced_bytes();
  usage.commits = commits_;
  usage.written_bytes = log_.written_bytes();
  usage.copied_bytes = cleaner_.copied_bytes();
  usage.segments = store_.segments.count();
  return usage;
}

// ---- time

bool JournalEngine::make_due(Moment now) {
  store_.wheel.observe(now);
  if (is_planted(Canary::kEarlyWheelSlot)) now += Millis{40};
  if (!store_.wheel.may_have_due(now)) return true;
  const bool is_finished =
      store_.wheel.advance(now, options_.work_per_tick, [this](Slot slot) { on_wake(slot); });
  if (!due_records_.empty()) read_due();
  return is_finished;
}

void JournalEngine::read_due() {
  uint64_t bytes = 0;
  std::vector<Location> wanted;
  for (const Location& record : std::exchange(due_records_, {})) {
    if (due_jobs_.size() + wanted.size() < kMostDueTold && bytes < kMostDueBytes) {
      wanted.push_back(record);
      bytes += record.size;
    } else {
      ++due_left_out_;
    }
  }
  reader_.read(wanted, [this](const RecordReader::Found& found) {
    for (const std::optional<RecordView>& record : found.records) {
      const auto job = record ? parse_job(record->payload) : std::nullopt;
      if (job)
        due_jobs_.push_back({std::string(job->topic), std::string(job->id), std::string(job->group)});
      else
        ++due_left_out_;
    }
  });
}

void JournalEngine::on_wake(Slot slot) {
  const Entry& entry = store_.jobs[slot];
  switch (entry.state()) {
    case JobState::kDelayed: {
      // Not written to disk: a due job becomes ready after a restart, too.
      StatePayload ready = store_.state_of(slot);
      ready.state = JobState::kReady;
      store_.change(slot, ready);
      announce(slot);
      if (watches_due_) due_records_.push_back(entry.location);
      break;
    }
    case JobState::kReserved:
      if (is_planted(Canary::kForgottenLease)) break;
      expired_.push_back({slot, entry.seq, store_.jobs.find_extra(slot)->lease});
      break;
    case JobState::kDone:
    case JobState::kDead:
      forget(slot);
      break;
    case JobState::kReady:
      break;
  }
}

void JournalEngine::announce(Slot slot) {
  const Entry& entry = store_.jobs[slot];
  bool& announced = store_.topics[entry.topic].announced[static_cast<size_t>(entry.outlet())];
  if (announced) return;
  announced = true;
  announced_.emplace_back(entry.topic, entry.outlet());
}

Moment JournalEngine::tick(Moment now) {
  if (failure_) return kNever;
  now_ = now;
  log_.set_time(now);
  const bool finished = make_due(now);
  store_.wheel.prepare(now, kPreparePortion);
  store_.topics.forget_idle(now);
  if (due_schedules_.empty()) due_schedules_ = store_.schedules.take_due(now);
  if (!finished) return now;
  Moment next = std::min(store_.wheel.wakeup(), store_.topics.next_forgetting());
  next = std::min(next, std::max(now, store_.schedules.next_report()));
  if (options_.durability == Durability::kInterval && log_.head_needs_sync()) {
    // A clock that went back must not delay the sync.
    sync_is_due_ = now >= last_sync_ + options_.sync_interval || now < last_sync_;
    next = std::min(next, sync_is_due_ ? now + options_.sync_interval : last_sync_ + options_.sync_interval);
  }
  // Probing starts at four times the reserve, because the layer above may refuse pushes
  // earlier than this engine.
  if (log_.disk_free() / 4 < options_.disk_reserve || log_.lacks_room()) {
    probe_disk(now);
    next = std::min(next, next_probe_);
  }
  return next;
}

/// While pushes are refused there are no commits that would measure the free space, so it is measured here.
void JournalEngine::probe_disk(Moment now) {
  if (now < next_probe_ && next_probe_ <= now + kProbeInterval) return;
  next_probe_ = now + kProbeInterval;
  auto free_bytes = std::make_shared<uint64_t>(log_.disk_free());
  io_.run(
      Lane::kWrite,
      [this, free_bytes] {
        if (const Result<uint64_t> found = disk_.free_bytes(); found.ok()) *free_bytes = *found;
      },
      [this, free_bytes] {
        log_.set_disk_free(*free_bytes);
        if (*free_bytes > 0) log_.retry();
      });
}

// ---- records

Location JournalEngine::write_job(const NewJob& job, StatePayload& state, Moment pushed) {
  const size_t size = sizeof(JobPayload) + job.topic.size() + job.id.size() + job.group.size() +
                      job.options.size() + job.body.size();
  return log_.append(kHeadStream, RecordType::kJob, size, [&](std::span<std::byte> payload, Lsn lsn) {
    if (state.seq == 0) state.seq = lsn;
    JobPayload fixed{};
    fixed.state = state;
    fixed.pushed_ms = to_unix_ms(pushed);
    fixed.priority = job.priority;
    fixed.options_size = static_cast<uint16_t>(job.options.size());
    fixed.topic_size = static_cast<uint8_t>(job.topic.size());
    fixed.id_size = static_cast<uint8_t>(job.id.size());
    fixed.group_size = static_cast<uint8_t>(job.group.size());
    fixed.lease_ms = to_lease_ms(job.lease);
    std::byte* out = payload.data();
    std::memcpy(out, &fixed, sizeof fixed);
    out += sizeof fixed;
    for (const std::string_view part : {job.topic, job.id, job.group, job.options, job.body}) {
      if (!part.empty()) std::memcpy(out, part.data(), part.size());
      out += part.size();
    }
  });
}

void JournalEngine::write_state(Slot slot, std::string_view outcome) {
  const StatePayload state = store_.state_of(slot);
  const RecordType type = outcome.empty() ? RecordType::kState : RecordType::kOutcome;
  const Location location =
      log_.append(kHeadStream, type, sizeof state + outcome.size(), [&](std::span<std::byte> payload, Lsn) {
        std::memcpy(payload.data(), &state, sizeof state);
        if (outcome.empty()) return;
        std::memcpy(payload.data() + sizeof state, outcome.data(), outcome.size());
      });
  if (outcome.empty()) {
    store_.set_state_record(slot, location);
  } else {
    store_.set_outcome_record(slot, location, true);
  }
}

void JournalEngine::forget(Slot slot) {
  const Entry& entry = store_.jobs[slot];
  const uint64_t seq = entry.seq;
  const uint32_t segment = entry.location.segment;
  const TopicNumber topic = entry.topic;
  store_.erase(slot);
  write_gone(seq, segment);
  store_.topics.note_idle(topic, now_);
}

void JournalEngine::write_gone(uint64_t seq, uint32_t segment) {
  const GonePayload gone{seq, segment, 0};
  const Location location = log_.append(
      kHeadStream, RecordType::kGone, sizeof gone,
      [&](std::span<std::byte> payload, Lsn) { std::memcpy(payload.data(), &gone, sizeof gone); });
  store_.segments.keep_gone(location, segment);
}

void JournalEngine::move(Slot slot, const StatePayload& next, std::string_view outcome) {
  store_.change(slot, next);
  write_state(slot, outcome);
  if (next.state == JobState::kReady) announce(slot);
}

StatePayload JournalEngine::waiting_until(Slot slot, Moment due, Moment now) const {
  StatePayload next = store_.state_of(slot);
  next.state = due <= now ? JobState::kReady : JobState::kDelayed;
  next.due_ms = static_cast<int64_t>(to_stored_ms(due));
  next.until_ms = 0;
  next.lease = 0;
  next.flags &= kHasCallback;
  return next;
}

void JournalEngine::finish(Slot slot, JobState state, const Keep& keep, Moment now,
                           std::string_view outcome) {
  if (keep.count == 0 || keep.until <= now) return forget(slot);
  StatePayload next = store_.state_of(slot);
  next.state = state;
  next.until_ms = static_cast<int64_t>(to_stored_ms(keep.until));
  next.lease = to_stored_ms(now);
  next.flags &= kHasCallback;
  move(slot, next, outcome);
  const Topic::Chain& kept = store_.topics[store_.jobs[slot].topic].chain(state);
  while (kept.count > keep.count) forget(kept.first);
}

// ---- commits

void JournalEngine::when_durable(Later later) {
  if (failure_) {  // the engine failed while this was being read
    ready_.push_back([later = std::move(later), error = *failure_]() mutable { later(error); });
    return;
  }
  undurable_.emplace_back(log_.head_end_lsn(), std::move(later));
}

void JournalEngine::begin_commit() {
  if (failure_ || log_.head_is_committing()) return;
  const bool sync = options_.durability == Durability::kCommit || sync_is_due_;
  if (!log_.commit_head(sync, [this](const Status& status) { on_commit(status); })) return;
  if (!sync) return;
  sync_is_due_ = false;
  last_sync_ = now_;
}

void JournalEngine::on_commit(const Status& status) {
  if (!status.ok()) return fail(status);
  ++commits_;
}

void JournalEngine::fail(const Status& status) {
  if (failure_) return;
  failure_ =
      Error{ErrorCode::kUnavailable, "journal",
            fmt::format("the journal could not be written ({}); nothing is accepted until the server is "
                        "restarted. What was acknowledged is safe",
                        status.error().detail)};
  for (auto* waiting : {&undurable_, &unsynced_}) {
    for (auto& [lsn, later] : *waiting) {
      ready_.push_back([later = std::move(later), error = *failure_]() mutable { later(error); });
    }
    waiting->clear();
  }
}

void JournalEngine::release(std::deque<std::pair<Lsn, Later>>& waiting, Lsn end) {
  while (!waiting.empty() && waiting.front().first <= end) {
    ready_.push_back([later = std::move(waiting.front().second)]() mutable { later(Status{}); });
    waiting.pop_front();
  }
}

bool JournalEngine::poll(EngineListener& listener) {
  bool busy = io_.poll();
  if (!cleaner_.status().ok()) fail(cleaner_.status());
  begin_commit();  // so that the disk works while the replies are called

  release(undurable_, options_.durability == Durability::kCommit ? log_.durable_lsn() : log_.written_lsn());
  release(unsynced_, log_.durable_lsn());
  std::vector<Io::Step> answers;
  answers.swap(ready_);
  for (Io::Step& answer : answers) answer();

  const auto topics = std::exchange(announced_, {});
  for (const auto& [number, outlet] : topics) {
    store_.topics[number].announced[static_cast<size_t>(outlet)] = false;
    listener.on_ready(store_.topics[number].name, outlet);
  }
  tell_expired(listener);
  busy |= !answers.empty() || !topics.empty() || !due_schedules_.empty() || !due_jobs_.empty();
  if (!due_jobs_.empty() || due_left_out_ > 0)
    listener.on_due(std::exchange(due_jobs_, {}), std::exchange(due_left_out_, 0));
  if (!due_schedules_.empty()) listener.on_schedules_due(std::exchange(due_schedules_, {}));

  begin_commit();
  if (!failure_ && options_.compacts) cleaner_.step(now_);
  return busy || !ready_.empty();
}

void JournalEngine::tell_expired(EngineListener& listener) {
  for (const Expired& lease : std::exchange(expired_, {})) {
    // The job may have been acked, extended or cancelled meanwhile.
    if (store_.find_number(lease.seq) != lease.slot) continue;
    const Extra* extra = store_.jobs.find_extra(lease.slot);
    if (extra->lease != lease.lease || store_.wheel.contains(lease.slot)) continue;
    const Entry& entry = store_.jobs[lease.slot];
    const LeaseText text = format_lease({lease.seq, lease.lease});
    LeaseInfo info{store_.topics[entry.topic].name, {text.data(), text.size()}, {}, entry.attempts};
    if (!entry.has_options) {
      expired_infos_.push_back(std::move(info));
      continue;
    }
    reader_.read({entry.location}, [this, info = std::move(info)](RecordReader::Found found) mutable {
      // If the record cannot be read, the topic's policy decides.
      const auto job =
          found.status.ok() && found.records[0] ? parse_job(found.records[0]->payload) : std::nullopt;
      if (job) info.options = job->options;
      expired_infos_.push_back(std::move(info));
    });
  }
  if (!expired_infos_.empty()) listener.on_expired(std::exchange(expired_infos_, {}));
}

void JournalEngine::set_wakeup(std::function<void()> wakeup) { io_.set_wakeup(std::move(wakeup)); }

void JournalEngine::flush(Reply<bool> reply) {
  if (failure_) return answer(std::move(reply), Result<bool>(*failure_));
  when_synced([reply = std::move(reply)](const Status& status) mutable {
    reply(status.ok() ? Result<bool>(true) : Result<bool>(status.error()));
  });
}

void JournalEngine::when_synced(Later later) {
  sync_is_due_ = true;
  unsynced_.emplace_back(log_.head_end_lsn(), std::move(later));
}

void JournalEngine::backup(std::string_view name, Reply<BackupReport> reply) {
  const auto refuse = [&](std::string detail) {
    const Error error{ErrorCode::kUnavailable, "backup", std::move(detail)};
    answer(std::move(reply), Result<BackupReport>(error));
  };
  if (failure_) return answer(std::move(reply), Result<BackupReport>(*failure_));
  if (options_.backups == nullptr) return refuse("there is no place for backups; set server.backups");
  if (!backup_.reserve()) return refuse("another backup is being made; try again when it is done");
  // The copy must contain everything that was replied to, and it contains only synced bytes.
  when_synced([this, name = std::string(name), reply = std::move(reply)](const Status& status) mutable {
    if (!status.ok()) {
      backup_.give_back();
      return reply(status.error());
    }
    backup_.start({std::move(name), options_.backups, options_.disk_reserve, store_.jobs.size(),
                   log_.directory(), log_.epoch()},
                  [this, reply = std::move(reply)](Result<BackupReport> report) mutable {
                    answer(std::move(reply), std::move(report));
                  });
  });
}

}  // namespace delayq::journal
