#include "delivery/sink.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/limits.h"
#include "core/moment.h"
#include "json/writer.h"
#include "queue/job_options.h"

namespace delayq::delivery {

namespace {

/// How long nothing is sent to a far side that is away: at first, and at most.
constexpr Millis kFirstRest{100};
constexpr Millis kLongestRest = std::chrono::seconds{5};

/// Calls `tell` with the items, as many at a time as the queue accepts in one batch.
template <class Item>
void in_batches(std::span<const Item> items, auto tell) {
  while (!items.empty()) {
    const size_t count = std::min<size_t>(items.size(), Limits::kBatchJobs);
    tell(items.first(count));
    items = items.subspan(count);
  }
}

}  // namespace

void Settlement::done(std::string_view lease, std::string_view outcome) {
  done_.push_back({texts_.copy(lease), texts_.copy(outcome)});
}

void Settlement::failed(std::string_view lease, std::string_view reason, std::optional<Millis> retry_after) {
  failed_.push_back({texts_.copy(lease), retry_after, texts_.copy(reason)});
}

void Settlement::dead(std::string_view lease, std::string_view reason) {
  failed_.push_back({texts_.copy(lease), std::nullopt, texts_.copy(reason), true});
}

void Settlement::give_back(std::string_view lease, Moment at) { back_.push_back({texts_.copy(lease), at}); }

bool Settlement::send(Moment now) {
  if (done_.empty() && failed_.empty() && back_.empty()) return false;
  // The queue may report jobs while it works, and what becomes of these is for the next call.
  auto done = std::exchange(done_, {});
  const auto failed = std::exchange(failed_, {});
  const auto back = std::exchange(back_, {});
  const Arena texts = std::exchange(texts_, {});
  in_batches<AckItem>(done, [&](auto batch) { queue_.ack(now, batch, nullptr); });
  in_batches<NackItem>(failed, [&](auto batch) { queue_.nack(now, batch, nullptr); });
  in_batches<GiveBackItem>(back, [&](auto batch) { queue_.give_back(now, batch, nullptr); });
  done.clear();
  if (done_.empty()) done_.swap(done);  // its memory is for the next turn
  return true;
}

// ---- the jobs of a sink

Ticket Ledger::open(const TakenJob& taken, const LeaseTerms& terms, Moment now) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(entries_.size()));
    entries_.emplace_back();
  }
  const uint32_t place = free_.back();
  free_.pop_back();
  Entry& entry = entries_[place];
  entry.lease = taken.lease;
  entry.due = taken.job.due;
  entry.until = taken.job.until;
  entry.renewed_length = terms.is_renewed ? terms.length : Millis::zero();
  entry.is_open = true;
  ++size_;
  if (terms.is_renewed) next_renewal_ = std::min(next_renewal_, now + terms.length / 4);
  return (uint64_t{entry.generation} << 32) | place;
}

Ledger::Entry* Ledger::find(Ticket ticket) {
  const auto place = static_cast<uint32_t>(ticket);
  if (place >= entries_.size()) return nullptr;
  Entry& entry = entries_[place];
  return entry.is_open && entry.generation == ticket >> 32 ? &entry : nullptr;
}

bool Ledger::holds(Ticket ticket) const { return const_cast<Ledger*>(this)->find(ticket) != nullptr; }

std::string_view Ledger::close(Entry& entry) {
  entry.is_open = false;
  ++entry.generation;
  free_.push_back(static_cast<uint32_t>(&entry - entries_.data()));
  if (--size_ == 0) next_renewal_ = kNever;
  return entry.lease;
}

void Ledger::done(Ticket ticket, std::string_view outcome) {
  Entry* const entry = find(ticket);
  if (entry == nullptr) return;
  ++counts_.delivered;
  settlement_.done(close(*entry), outcome);
}

void Ledger::failed(Ticket ticket, std::string_view reason, std::optional<Millis> retry_after) {
  Entry* const entry = find(ticket);
  if (entry == nullptr) return;
  ++counts_.failed;
  settlement_.failed(close(*entry), reason, retry_after);
}

void Ledger::dead(Ticket ticket, std::string_view reason) {
  Entry* const entry = find(ticket);
  if (entry == nullptr) return;
  ++counts_.failed;
  settlement_.dead(close(*entry), reason);
}

void Ledger::give_back(Ticket ticket, std::optional<Moment> at) {
  Entry* const entry = find(ticket);
  if (entry == nullptr) return;
  ++counts_.given_back;
  settlement_.give_back(close(*entry), at.value_or(entry->due));
}

void Ledger::give_back_all() {
  for (Entry& entry : entries_) {
    if (!entry.is_open) continue;
    ++counts_.given_back;
    settlement_.give_back(close(entry), entry.due);
  }
}

void Ledger::turn_back(const TakenJob& taken) {
  ++counts_.given_back;
  settlement_.give_back(taken.lease, taken.job.due);
}

void Ledger::renew(Queue& queue, Moment now) {
  next_renewal_ = kNever;
  std::vector<ExtendItem> items;
  const auto send = [&] {
    // If the lease is already lost, this is noticed when the job is settled.
    if (!items.empty()) queue.extend(now, items, [](const Result<std::vector<Result<Moment>>>&) {});
    items.clear();
  };
  for (Entry& entry : entries_) {
    const Millis length = entry.renewed_length;
    if (!entry.is_open || length == Millis::zero()) continue;
    next_renewal_ = std::min(next_renewal_, now + length / 4);
    if (entry.until >= now + length / 2) continue;
    entry.until = now + length;
    items.push_back({entry.lease, length});
    if (items.size() == Limits::kBatchJobs) send();
  }
  send();
}

// ---- the far side

bool Ledger::away(Moment now) {
  if (rests_until_ > now) return false;  // one of many jobs that were under way
  const bool is_news = rest_ == Millis::zero();
  rest_ = std::clamp(rest_ * 2, kFirstRest, kLongestRest);
  // Random, so that not all servers try at the same moment.
  const auto spread = static_cast<int64_t>(random_.below(static_cast<uint64_t>(rest_.count() / 4 + 1)));
  rests_until_ = now + rest_ - Millis{spread};
  return is_news;
}

bool Ledger::answered() { return std::exchange(rest_, Millis::zero()) != Millis::zero(); }

void Ledger::clock_set_back(Millis by) {
  rests_until_ -= by;
  if (next_renewal_ != kNever) next_renewal_ -= by;
}

Source& Sources::tell(std::string_view topic, Outlet outlet) {
  std::unique_ptr<Source>& source = all_[Key{topic, outlet}];
  if (source == nullptr) {
    source = std::make_unique<Source>();
    source->topic = topic;
    source->outlet = outlet;
    source->serial = ++last_serial_;
    runnable_.push_back(source.get());
  }
  return *source;
}

Source* Sources::next() {
  if (runnable_.empty()) return nullptr;
  Source* source = runnable_.front();
  runnable_.pop_front();
  source->state = Source::State::kTaking;
  source->told_again = false;
  return source;
}

void Sources::leave_state(Source& source) {
  if (source.state == Source::State::kSleeping) sleeping_.erase({source.wakes_at, source.serial});
  if (source.state == Source::State::kHeld) {
    const auto line = held_.find(source.lane);
    line->second.erase(std::find(line->second.begin(), line->second.end(), &source));
    if (line->second.empty()) held_.erase(line);
  }
}

void Sources::run(Source& source) {
  if (source.state == Source::State::kRunnable) return;
  leave_state(source);
  source.state = Source::State::kRunnable;
  runnable_.push_back(&source);
}

void Sources::rest(Source& source, Moment until) {
  leave_state(source);
  source.state = Source::State::kSleeping;
  source.wakes_at = until;
  sleeping_.emplace(std::pair{until, source.serial}, &source);
}

void Sources::hold(Source& source, std::string lane) {
  leave_state(source);
  source.state = Source::State::kHeld;
  source.lane = std::move(lane);
  held_[source.lane].push_back(&source);
}

void Sources::drop(Source& source) {
  leave_state(source);
  all_.erase(Key{source.topic, source.outlet});
}

void Sources::wake_sleepers(Moment now) {
  while (!sleeping_.empty() && sleeping_.begin()->first.first <= now) run(*sleeping_.begin()->second);
}

void Sources::lane_has_room(const std::string& lane, uint32_t jobs) {
  if (held_.contains(lane)) {
    for (; jobs > 0 && held_.contains(lane); --jobs) run(*held_.find(lane)->second.front());
    return;
  }
  // It is not known for which lane a source rests.
  for (const auto& [when, source] : sleeping_) {
    if (source->rest > Millis::zero()) return run(*source);
  }
}

void Sources::lane_is_closed(const std::string& lane) {
  while (held_.contains(lane)) run(*held_.find(lane)->second.front());
}

std::string job_text(const Job& job) {
  std::string text;
  text.reserve(job.body.size() + 256);
  json::Writer json(text);
  json.begin_object().key("topic").text(job.topic).key("id").text(job.id);
  json::write_body(json, job.body);
  json.key("attempt").number(uint64_t{job.attempts});
  json.key("due_at").text(format_moment(job.due)).key("pushed_at").text(format_moment(job.pushed));
  json.key("priority").number(uint64_t{job.priority});
  if (!job.group.empty()) json.key("group").text(job.group);
  const JobOptions options = decode_job_options(job.options);
  if (!options.name.empty()) json.key("name").text(options.name);
  if (!options.content_type.empty()) json.key("content_type").text(options.content_type);
  json.end_object();
  return text;
}

}  // namespace delayq::delivery
