#include "queue/leases.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "core/limits.h"
#include "core/text.h"
#include "queue/context.h"
#include "queue/job_options.h"

namespace delayq {

namespace {

// In the text of an attempt: "3", "3a5" (of at most 5), "3d60000" (60 s until the next), "3a5d60000".
constexpr char kLimitMark = 'a';
constexpr char kDelayMark = 'd';
constexpr size_t kMostAttemptBytes = 48;

/// Removes a number of plain digits from the front of `text`; nullopt when there is none, or it does not fit.
template <class T>
std::optional<T> take_number(std::string_view& text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || text.front() == '-') return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

bool take_mark(std::string_view& text, char mark) {
  if (!text.starts_with(mark)) return false;
  text.remove_prefix(1);
  return true;
}

std::optional<Attempt> parse_attempt(std::string_view text) {
  const std::optional<uint32_t> number = take_number<uint32_t>(text);
  if (!number) return std::nullopt;
  Attempt attempt{.number = *number};
  if (take_mark(text, kLimitMark)) {
    attempt.limit = take_number<uint32_t>(text);
    if (!attempt.limit) return std::nullopt;
  }
  if (take_mark(text, kDelayMark)) {
    const std::optional<int64_t> delay = take_number<int64_t>(text);
    if (!delay || Millis{*delay} > Limits::kMaxDelay) return std::nullopt;
    attempt.delay = Millis{*delay};
  }
  return text.empty() ? std::optional(attempt) : std::nullopt;
}

}  // namespace

Attempt attempt_of(std::string_view options, uint32_t attempts, Random& random) {
  Attempt attempt{.number = attempts};
  if (options.empty()) return attempt;
  const JobOptions own = decode_job_options(options);
  attempt.limit = own.attempts;
  if (own.backoff) attempt.delay = next_delay({0, *own.backoff}, attempts, random.next());
  return attempt;
}

std::string_view lease_text(const LeaseRef& lease, const Attempt& attempt, Arena& storage) {
  std::array<char, kMostAttemptBytes> number;
  char* const end = number.data() + number.size();
  char* last = std::to_chars(number.data(), end, attempt.number).ptr;
  if (attempt.limit) *last++ = kLimitMark, last = std::to_chars(last, end, *attempt.limit).ptr;
  if (attempt.delay) *last++ = kDelayMark, last = std::to_chars(last, end, attempt.delay->count()).ptr;
  const auto bytes = static_cast<size_t>(last - number.data());
  const std::span<char> room = storage.allocate(lease.topic.size() + lease.lease.size() + 2 + bytes);
  char* at = std::copy(lease.topic.begin(), lease.topic.end(), room.data());
  *at++ = '/';
  at = std::copy(lease.lease.begin(), lease.lease.end(), at);
  *at++ = '/';
  std::copy(number.data(), last, at);
  return {room.data(), room.size()};
}

Result<HeldLease> parse_lease(std::string_view text) {
  const std::string_view topic = topic_of_lease(text);
  const std::string_view rest = text.substr(std::min(topic.size() + 1, text.size()));
  const std::string_view lease = topic_of_lease(rest);
  std::optional<Attempt> attempt = Attempt{};
  if (lease.size() < rest.size()) attempt = parse_attempt(rest.substr(lease.size() + 1));
  if (topic.empty() || lease.empty() || !attempt)
    return invalid("lease", "lease " + quote(text) + " is not one that a pop has answered");
  return HeldLease{{topic, lease}, *attempt};
}

Verdict judge(const Failure& failure, const EffectiveSettings& topic, Moment now, uint64_t random) {
  std::optional<Millis> delay;
  if (!failure.dead) {
    const RetryPolicy policy{failure.attempt.limit.value_or(topic.attempts), topic.backoff};
    delay = next_delay(policy, failure.attempt.number, random);
    if (delay && failure.attempt.delay) delay = failure.attempt.delay;
    if (delay && failure.delay) delay = failure.delay;
  }
  if (!delay) return {std::nullopt, keep_from(now, topic.keep_dead)};
  return {saturating_add(now, *delay), {}};
}

namespace {

constexpr std::string_view kExpiredReason = "lease ran out";
constexpr Millis kPauseAfterError = std::chrono::seconds{1};

Error stale(std::string_view op) {
  return {ErrorCode::kStaleLease, std::string{op}, "the lease is not the current one any more"};
}

/// Adds an item of `topic` to the runs. Looks the topic up only when it differs from the last one.
TopicRun& add_to_runs(TopicRuns& runs, std::string_view& last, std::string_view topic,
                      const KnownTopics& topics) {
  if (runs.empty() || topic != last) {
    runs.push_back({topics.find(topic), 0});
    last = topic;
  }
  ++runs.back().count;
  return runs.back();
}

}  // namespace

const EffectiveSettings& Leases::settings_of(const TopicPtr& topic) const {
  return topic == nullptr ? defaults_ : *topic->settings;
}

// ---- ack

void Leases::ack(std::span<const AckItem> items, Reply<std::vector<Status>> reply) {
  if (const Status size = check_batch("ack", items.size()); !size)
    return context_.refuse(reply, size.error());
  // Who does not ask for the results, as deliveries do, does not pay for them.
  const bool is_asked = static_cast<bool>(reply);
  std::vector<Status> results(is_asked ? items.size() : 0);
  std::vector<AckRequest> requests;
  requests.reserve(items.size());
  Places places;
  TopicRuns runs;
  std::string_view last;
  const bool is_told = context_.news.is_on();
  std::vector<LeaseRef> told;
  std::vector<uint32_t> attempts;
  for (size_t i = 0; i < items.size(); ++i) {
    const Result<HeldLease> lease = parse_lease(items[i].lease);
    const Status outcome = check_reason(items[i].outcome);
    if (!lease.ok() || !outcome.ok()) {
      if (is_asked) results[i] = in_verb("ack", lease.ok() ? outcome.error() : lease.error());
      places.leave_out();
      continue;
    }
    places.keep();
    const TopicRun& run = add_to_runs(runs, last, lease->ref.topic, context_.topics);
    requests.push_back(
        {lease->ref, keep_from(context_.now, settings_of(run.topic).keep_done), items[i].outcome});
    if (is_told) told.push_back(lease->ref), attempts.push_back(lease->attempt.number);
  }
  if (requests.empty()) return context_.answer(reply, Result<std::vector<Status>>{std::move(results)});
  const TellingPtr telling = begin_telling(told);
  context_.engine.ack(context_.now, requests,
                      [this, is_asked, telling, attempts = std::move(attempts), results = std::move(results),
                       places = std::move(places), runs = std::move(runs),
                       reply = std::move(reply)](const Result<std::vector<AckOutcome>>& outcomes) mutable {
                        size_t next = 0;
                        for (const TopicRun& run : runs) {
                          uint64_t acked = 0;
                          for (uint32_t i = 0; i < run.count; ++i, ++next) {
                            const bool is_acked = outcomes.ok() && (*outcomes)[next] == AckOutcome::kAcked;
                            acked += is_acked ? 1 : 0;
                            if (is_acked && telling != nullptr)
                              tell(telling, {next, NewsKind::kDone, JobState::kDone, attempts[next]});
                            if (is_acked || !is_asked) continue;
                            results[places[next]] = outcomes.ok() ? stale("ack") : outcomes.error();
                          }
                          context_.topics.count(run.topic.get(), Tally::kAcked, acked);
                          if (acked > 0) hand_over_.lease_ended(run.topic);
                        }
                        context_.answer(reply, Result<std::vector<Status>>{std::move(results)});
                      });
}

void Leases::ack_job(const JobRef& job, Reply<void> reply) {
  if (const Status status = check_topic(job.topic); !status)
    return context_.refuse(reply, in_verb("ack", status.error()));
  if (const Status status = check_id(job.id); !status)
    return context_.refuse(reply, in_verb("ack", status.error()));
  context_.engine.get(
      context_.now, job,
      [this, reply = std::move(reply),
       steps = context_.begin_steps()](const Result<std::optional<FoundJob>>& found) mutable {
        if (!found.ok()) return context_.refuse(reply, found.error());
        if (!*found)
          return context_.refuse(reply, Error{ErrorCode::kNotFound, "ack", "there is no such job"});
        const Job& held = (*found)->job;
        if ((*found)->lease.empty()) {
          return context_.refuse(
              reply, Error{ErrorCode::kConflict, "ack",
                           fmt::format("the job is {}: only one that is with a consumer can be acked",
                                       name_of(held.state))});
        }
        Arena storage;
        const AckItem item{.lease = lease_text({held.topic, (*found)->lease}, Attempt{}, storage)};
        ack({&item, 1}, [this, reply = std::move(reply)](const Result<std::vector<Status>>& results) mutable {
          context_.answer(reply, results.ok() ? results->front() : Status{results.error()});
        });
      });
}

// ---- nack

/// A batch until all its items are decided.
struct Leases::NackBatch {
  struct Item {
    size_t place = 0;  ///< index into the results
    TopicPtr topic;
    std::optional<Moment> retry_at;
    uint32_t attempt = 0;
    std::string reason;  ///< when somebody listens
  };

  std::vector<Item> items;
  std::vector<Result<NackReceipt>> results;
  std::vector<uint32_t> sent;  ///< the items that the engine gets as one batch
  TellingPtr telling;
  Reply<std::vector<Result<NackReceipt>>> reply;
  size_t unanswered = 0;  ///< the batch of the engine, and each death that is announced
  Steps steps;
};

void Leases::nack(std::span<const NackItem> items, Reply<std::vector<Result<NackReceipt>>> reply) {
  if (const Status size = check_batch("nack", items.size()); !size)
    return context_.refuse(reply, size.error());
  const auto batch = std::make_shared<NackBatch>();
  std::vector<LeaseRef> told;
  std::vector<NackRequest> requests;
  std::vector<std::pair<uint32_t, DeathNotices::Death>> deaths;
  const bool is_told = context_.news.is_on();
  for (const NackItem& item : items) {
    const Result<HeldLease> lease = parse_lease(item.lease);
    Status status = lease.ok() ? check_reason(item.reason) : Status{lease.error()};
    if (status.ok() && item.delay) status = check_delay(*item.delay);
    if (!status) {
      batch->results.emplace_back(in_verb("nack", status.error()));
      continue;
    }
    const TopicPtr topic = context_.topics.find(lease->ref.topic);
    const Verdict verdict =
        judge({lease->attempt, item.delay, item.dead}, settings_of(topic), context_.now, nack_random_.next());
    const auto number = static_cast<uint32_t>(batch->items.size());
    if (!verdict.retry_at && DeathNotices::are_wanted(settings_of(topic), lease->ref.topic)) {
      deaths.emplace_back(number,
                          DeathNotices::Death{std::string(lease->ref.topic), std::string(lease->ref.lease),
                                              verdict.keep, std::string(item.reason)});
    } else {
      requests.push_back({lease->ref, verdict.retry_at, verdict.keep, item.reason});
      batch->sent.push_back(number);
    }
    batch->items.push_back({batch->results.size(), topic, verdict.retry_at, lease->attempt.number,
                            std::string(is_told ? item.reason : std::string_view())});
    if (is_told) told.push_back(lease->ref);
    batch->results.emplace_back(stale("nack"));  // replaced when the engine knows the lease
  }
  if (batch->items.empty()) return context_.answer(reply, Result{std::move(batch->results)});
  batch->telling = begin_telling(told);
  batch->reply = std::move(reply);
  batch->unanswered = (requests.empty() ? 0 : 1) + deaths.size();
  if (!deaths.empty()) batch->steps = context_.begin_steps();
  if (!requests.empty()) {
    context_.engine.nack(
        context_.now, requests, [this, batch](const Result<std::vector<NackOutcome>>& outcomes) {
          for (size_t i = 0; i < batch->sent.size(); ++i) {
            settle(
                *batch, batch->sent[i],
                outcomes.ok() ? Result<NackOutcome>((*outcomes)[i]) : Result<NackOutcome>(outcomes.error()));
          }
          end_part(*batch);
        });
  }
  for (auto& [number, death] : deaths) {
    death_notices_.announce(std::move(death),
                            [this, batch, item = number](const Result<NackOutcome>& outcome) {
                              settle(*batch, item, outcome);
                              end_part(*batch);
                            });
  }
}

void Leases::end_part(NackBatch& batch) {
  if (--batch.unanswered > 0) return;
  batch.steps.end();
  context_.answer(batch.reply, Result{std::move(batch.results)});
}

void Leases::settle(NackBatch& batch, size_t number, const Result<NackOutcome>& outcome) {
  const NackBatch::Item& item = batch.items[number];
  if (!outcome.ok()) {
    batch.results[item.place] = outcome.error();
    return;
  }
  if (*outcome == NackOutcome::kStale) return;
  TopicState* topic = item.topic.get();
  context_.topics.count(topic, Tally::kNacked, 1);
  if (*outcome == NackOutcome::kDead) context_.topics.count(topic, Tally::kDied, 1);
  if (*outcome == NackOutcome::kCancelled) context_.topics.count(topic, Tally::kCancelled, 1);
  batch.results[item.place] =
      NackReceipt{*outcome, *outcome == NackOutcome::kRetried ? item.retry_at : std::nullopt};
  tell_failure(batch.telling, number, *outcome, item.attempt, item.retry_at, item.reason);
  hand_over_.lease_ended(item.topic);
}

// ---- news

struct Leases::Telling {
  std::optional<HeldJobs> jobs;  ///< none: not known yet
  std::vector<Ended> waiting;    ///< until they are
};

Leases::TellingPtr Leases::begin_telling(std::span<const LeaseRef> leases) {
  if (!context_.news.is_on() || leases.empty()) return nullptr;
  auto telling = std::make_shared<Telling>();
  context_.engine.held(context_.now, leases, false, [this, telling](Result<HeldJobs> held) {
    telling->jobs = held.ok() ? std::move(*held) : HeldJobs{};
    for (const Ended& ended : std::exchange(telling->waiting, {})) note(*telling->jobs, ended);
  });
  return telling;
}

void Leases::tell(const TellingPtr& telling, Ended ended) {
  if (telling == nullptr) return;
  if (telling->jobs) return note(*telling->jobs, ended);
  telling->waiting.push_back(std::move(ended));
}

void Leases::note(const HeldJobs& jobs, const Ended& ended) {
  if (!context_.news.is_on()) return;
  if (ended.place >= jobs.jobs.size() || !jobs.jobs[ended.place]) return context_.news.note_left_out(1);
  const Job& job = *jobs.jobs[ended.place];
  context_.news.note({.kind = ended.kind,
                      .at = context_.now,
                      .topic = job.topic,
                      .id = job.id,
                      .group = job.group,
                      .state = ended.state,
                      .attempt = ended.attempt,
                      .due = ended.due,
                      .reason = ended.reason});
}

void Leases::tell_failure(const TellingPtr& telling, size_t place, NackOutcome outcome, uint32_t attempt,
                          std::optional<Moment> retry_at, std::string_view reason) {
  if (telling == nullptr) return;
  Ended ended{place, NewsKind::kFailed, JobState::kDelayed, attempt, retry_at, std::string(reason)};
  if (outcome == NackOutcome::kRetried && retry_at && *retry_at <= context_.now)
    ended.state = JobState::kReady;
  if (outcome == NackOutcome::kDead) ended.kind = NewsKind::kDead, ended.state = JobState::kDead;
  if (outcome == NackOutcome::kCancelled) {
    ended.kind = NewsKind::kCancelled;
    ended.state.reset();
  }
  if (outcome != NackOutcome::kRetried) ended.due.reset();
  tell(telling, std::move(ended));
}

// ---- give back

void Leases::give_back(std::span<const GiveBackItem> items, Reply<uint64_t> reply) {
  if (const Status size = check_batch("give_back", items.size()); !size)
    return context_.refuse(reply, size.error());
  std::vector<NackRequest> requests;
  std::vector<TopicPtr> topics;
  for (const GiveBackItem& item : items) {
    const Result<HeldLease> lease = parse_lease(item.lease);
    if (!lease.ok()) continue;
    NackRequest& request = requests.emplace_back();
    request.lease = lease->ref;
    request.retry_at = item.at;
    request.uncounted = true;
    topics.push_back(context_.topics.find(lease->ref.topic));
  }
  if (requests.empty()) return context_.answer(reply, Result<uint64_t>{0});
  context_.engine.nack(context_.now, requests,
                       [this, topics = std::move(topics),
                        reply = std::move(reply)](const Result<std::vector<NackOutcome>>& outcomes) mutable {
                         if (!outcomes.ok()) return context_.refuse(reply, outcomes.error());
                         uint64_t given = 0;
                         for (size_t i = 0; i < outcomes->size(); ++i) {
                           if ((*outcomes)[i] == NackOutcome::kStale) continue;
                           ++given;
                           hand_over_.lease_ended(topics[i]);
                         }
                         context_.answer(reply, Result<uint64_t>{given});
                       });
}

// ---- extend

void Leases::extend(std::span<const ExtendItem> items, Reply<std::vector<Result<Moment>>> reply) {
  if (const Status size = check_batch("extend", items.size()); !size)
    return context_.refuse(reply, size.error());
  std::vector<Result<Moment>> results;
  std::vector<ExtendRequest> requests;
  Places places;
  TopicRuns runs;
  std::string_view last;
  for (const ExtendItem& item : items) {
    const Result<HeldLease> lease = parse_lease(item.lease);
    const Status duration = item.duration ? check_lease(*item.duration) : Status{};
    if (!lease.ok() || !duration.ok()) {
      results.emplace_back(in_verb("extend", lease.ok() ? duration.error() : lease.error()));
      places.leave_out();
      continue;
    }
    const TopicRun& run = add_to_runs(runs, last, lease->ref.topic, context_.topics);
    const Moment until = saturating_add(context_.now, item.duration.value_or(settings_of(run.topic).lease));
    places.keep();
    results.emplace_back(until);
    // Without a duration the lease must not become shorter: the current one may be long.
    requests.push_back({lease->ref, until, !item.duration});
  }
  if (requests.empty()) return context_.answer(reply, Result{std::move(results)});
  const size_t count = requests.size();
  context_.engine.extend(
      context_.now, requests,
      [this, count, results = std::move(results), places = std::move(places),
       reply = std::move(reply)](const Result<std::vector<ExtendAnswer>>& extended) mutable {
        for (size_t i = 0; i < count; ++i) {
          if (!extended.ok()) {
            results[places[i]] = extended.error();
          } else if (!(*extended)[i]) {
            results[places[i]] = stale("extend");
          } else {
            results[places[i]] = *(*extended)[i];
          }
        }
        context_.answer(reply, Result{std::move(results)});
      });
}

// ---- expired leases

/// Leases that expired, until all are decided.
struct Leases::Expiry {
  std::vector<LeaseInfo> leases;
  std::vector<std::optional<Moment>> retry_at;  ///< by lease, as the next
  std::vector<uint32_t> sent;                   ///< those that the engine gets as one batch
  TellingPtr telling;
};

namespace {

std::string key_of(const LeaseInfo& lease) { return lease.topic + '\0' + lease.lease; }

}  // namespace

void Leases::expire(std::vector<LeaseInfo> leases) {
  if (!undecided_.empty())
    std::erase_if(leases, [this](const LeaseInfo& lease) { return undecided_.contains(key_of(lease)); });
  if (leases.empty()) return;
  const auto expiry = std::make_shared<Expiry>();
  expiry->leases = std::move(leases);
  std::vector<NackRequest> requests;
  std::vector<LeaseRef> told;
  std::vector<std::pair<uint32_t, DeathNotices::Death>> deaths;
  requests.reserve(expiry->leases.size());
  for (uint32_t i = 0; i < expiry->leases.size(); ++i) {
    const LeaseInfo& info = expiry->leases[i];
    const TopicPtr topic = context_.topics.find(info.topic);
    const Verdict verdict = judge({.attempt = attempt_of(info.options, info.attempts, expired_random_)},
                                  settings_of(topic), context_.now, expired_random_.next());
    expiry->retry_at.push_back(verdict.retry_at);
    told.push_back({info.topic, info.lease});
    if (!verdict.retry_at && DeathNotices::are_wanted(settings_of(topic), info.topic)) {
      undecided_.insert(key_of(info));
      deaths.emplace_back(
          i, DeathNotices::Death{info.topic, info.lease, verdict.keep, std::string(kExpiredReason), true});
      continue;
    }
    NackRequest& request = requests.emplace_back();
    request.lease = {info.topic, info.lease};
    request.retry_at = verdict.retry_at;
    request.keep = verdict.keep;
    request.reason = kExpiredReason;
    request.expired = true;
    expiry->sent.push_back(i);
  }
  expiry->telling = begin_telling(told);
  if (!requests.empty()) {
    context_.engine.nack(
        context_.now, requests, [this, expiry](const Result<std::vector<NackOutcome>>& outcomes) {
          for (size_t i = 0; i < expiry->sent.size(); ++i) {
            settle_expired(
                *expiry, expiry->sent[i],
                outcomes.ok() ? Result<NackOutcome>((*outcomes)[i]) : Result<NackOutcome>(outcomes.error()));
          }
        });
  }
  for (auto& [number, death] : deaths) {
    death_notices_.announce(std::move(death),
                            [this, expiry, item = number](const Result<NackOutcome>& outcome) {
                              settle_expired(*expiry, item, outcome);
                            });
  }
}

void Leases::settle_expired(Expiry& expiry, size_t number, const Result<NackOutcome>& outcome) {
  LeaseInfo& info = expiry.leases[number];
  if (!outcome.ok()) {
    undecided_.insert(key_of(info));
    unprocessed_.push_back(std::move(info));
    retry_at_ = context_.now + kPauseAfterError;
    return;
  }
  if (!undecided_.empty()) undecided_.erase(key_of(info));
  if (*outcome == NackOutcome::kStale) return;
  const TopicPtr topic = context_.topics.find(info.topic);
  context_.topics.count(topic.get(), Tally::kExpired, 1);
  if (*outcome == NackOutcome::kDead) context_.topics.count(topic.get(), Tally::kDied, 1);
  if (*outcome == NackOutcome::kCancelled) context_.topics.count(topic.get(), Tally::kCancelled, 1);
  tell_failure(expiry.telling, number, *outcome, info.attempts, expiry.retry_at[number], kExpiredReason);
  hand_over_.lease_ended(topic);
}

Moment Leases::tick() {
  // If the clock went back, the pause must not become longer.
  if (!unprocessed_.empty()) retry_at_ = std::min(retry_at_, context_.now + kPauseAfterError);
  if (!unprocessed_.empty() && retry_at_ <= context_.now) {
    retry_at_ = kNever;
    for (const LeaseInfo& lease : unprocessed_) undecided_.erase(key_of(lease));
    expire(std::exchange(unprocessed_, {}));
  }
  return unprocessed_.empty() ? kNever : retry_at_;
}

}  // namespace delayq
