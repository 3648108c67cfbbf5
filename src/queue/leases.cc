#include "queue/leases.h"

#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "queue/batch.h"
#include "queue/job_options.h"
#include "queue/lease_text.h"

namespace delayq {

Verdict judge(const Failure& failure, const EffectiveSettings& topic, Moment now, uint64_t random) {
  std::optional<Millis> delay;
  if (!failure.dead) {
    const JobOptions own = decode_job_options(failure.options);
    const RetryPolicy policy{own.attempts.value_or(topic.attempts),
                             own.backoff ? *own.backoff : topic.backoff};
    delay = next_delay(policy, failure.attempts, random);
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
  std::vector<Status> results(items.size());
  std::vector<AckRequest> requests;
  requests.reserve(items.size());
  Places places;
  TopicRuns runs;
  std::string_view last;
  for (size_t i = 0; i < items.size(); ++i) {
    const Result<LeaseRef> lease = parse_lease(items[i].lease);
    const Status outcome = check_reason(items[i].outcome);
    if (!lease.ok() || !outcome.ok()) {
      results[i] = in_verb("ack", lease.ok() ? outcome.error() : lease.error());
      places.leave_out();
      continue;
    }
    places.keep();
    const TopicRun& run = add_to_runs(runs, last, lease->topic, context_.topics);
    requests.push_back({*lease, keep_from(context_.now, settings_of(run.topic).keep_done), items[i].outcome});
  }
  if (requests.empty()) return context_.answer(reply, Result<std::vector<Status>>{std::move(results)});
  context_.engine.ack(context_.now, requests,
                      [this, results = std::move(results), places = std::move(places), runs = std::move(runs),
                       reply = std::move(reply)](const Result<std::vector<AckOutcome>>& outcomes) mutable {
                        size_t next = 0;
                        for (const TopicRun& run : runs) {
                          uint64_t acked = 0;
                          for (uint32_t i = 0; i < run.count; ++i, ++next) {
                            if (!outcomes.ok()) {
                              results[places[next]] = outcomes.error();
                            } else if ((*outcomes)[next] == AckOutcome::kStale) {
                              results[places[next]] = stale("ack");
                            } else {
                              ++acked;
                            }
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
        const AckItem item{.lease = lease_text({held.topic, (*found)->lease}, storage)};
        ack({&item, 1}, [this, reply = std::move(reply)](const Result<std::vector<Status>>& results) mutable {
          context_.answer(reply, results.ok() ? results->front() : Status{results.error()});
        });
      });
}

// ---- nack: reads the jobs from the engine, decides what happens to them, then sends that to the engine

struct Leases::NackBatch {
  struct Item {
    std::string text;  ///< the text of the lease
    LeaseRef lease;    ///< views into `text`
    std::optional<Millis> delay;
    std::string reason;
    bool dead = false;
    size_t place = 0;  ///< index into the results
    TopicPtr topic;
    std::optional<Moment> retry_at;
  };

  std::vector<Item> items;      ///< the valid ones; never moved, because of the views
  std::vector<size_t> running;  ///< indexes of the items that were sent to the engine
  std::vector<Result<NackReceipt>> results;
  Reply<std::vector<Result<NackReceipt>>> reply;
  Steps steps;
};

void Leases::nack(std::span<const NackItem> items, Reply<std::vector<Result<NackReceipt>>> reply) {
  if (const Status size = check_batch("nack", items.size()); !size)
    return context_.refuse(reply, size.error());
  auto batch = std::make_unique<NackBatch>();
  batch->items.reserve(items.size());
  std::vector<LeaseRef> leases;
  for (size_t i = 0; i < items.size(); ++i) {
    const NackItem& item = items[i];
    const Result<LeaseRef> lease = parse_lease(item.lease);
    Status status = lease.ok() ? check_reason(item.reason) : Status{lease.error()};
    if (status.ok() && item.delay) status = check_delay(*item.delay);
    if (!status) {
      batch->results.emplace_back(in_verb("nack", status.error()));
      continue;
    }
    batch->results.emplace_back(stale("nack"));  // replaced when the engine knows the lease
    NackBatch::Item& kept = batch->items.emplace_back();
    kept.text = item.lease;
    kept.lease = *parse_lease(kept.text);
    kept.delay = item.delay;
    kept.reason = item.reason;
    kept.dead = item.dead;
    kept.place = i;
    kept.topic = context_.topics.find(kept.lease.topic);
    leases.push_back(kept.lease);
  }
  if (leases.empty()) return context_.answer(reply, Result{std::move(batch->results)});
  batch->reply = std::move(reply);
  batch->steps = context_.begin_steps();
  context_.engine.inspect(
      context_.now, leases,
      [this, batch = std::move(batch)](const Result<std::vector<LeaseInfo>>& running) mutable {
        if (!running.ok()) {
          fail(*batch, running.error());
          return context_.answer(batch->reply, Result{std::move(batch->results)});
        }
        decide(std::move(batch), *running);
      });
}

void Leases::fail(NackBatch& batch, const Error& error) {
  for (const NackBatch::Item& item : batch.items) batch.results[item.place] = error;
}

void Leases::decide(std::unique_ptr<NackBatch> batch, const std::vector<LeaseInfo>& running) {
  std::vector<NackRequest> requests;
  size_t next = 0;
  // `running` has the items in the same order, without those whose lease is stale.
  for (size_t i = 0; i < batch->items.size() && next < running.size(); ++i) {
    NackBatch::Item& item = batch->items[i];
    const LeaseInfo& info = running[next];
    if (info.lease != item.lease.lease || info.topic != item.lease.topic) continue;
    ++next;
    const Verdict verdict = judge({info.options, info.attempts, item.delay, item.dead},
                                  settings_of(item.topic), context_.now, nack_random_.next());
    item.retry_at = verdict.retry_at;
    NackRequest& request = requests.emplace_back();
    request.lease = item.lease;
    request.retry_at = verdict.retry_at;
    request.keep = verdict.keep;
    request.reason = item.reason;
    batch->running.push_back(i);
  }
  if (requests.empty()) return context_.answer(batch->reply, Result{std::move(batch->results)});
  const Steps last_step = std::move(batch->steps);
  context_.engine.nack(context_.now, requests,
                       [this, batch = std::move(batch)](const Result<std::vector<NackOutcome>>& outcomes) {
                         if (outcomes.ok()) {
                           settle(*batch, *outcomes);
                         } else {
                           fail(*batch, outcomes.error());
                         }
                         context_.answer(batch->reply, Result{std::move(batch->results)});
                       });
}

void Leases::settle(NackBatch& batch, const std::vector<NackOutcome>& outcomes) {
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const NackBatch::Item& item = batch.items[batch.running[i]];
    const NackOutcome outcome = outcomes[i];
    if (outcome == NackOutcome::kStale) continue;
    TopicState* topic = item.topic.get();
    context_.topics.count(topic, Tally::kNacked, 1);
    if (outcome == NackOutcome::kDead) context_.topics.count(topic, Tally::kDied, 1);
    if (outcome == NackOutcome::kCancelled) context_.topics.count(topic, Tally::kCancelled, 1);
    batch.results[item.place] =
        NackReceipt{outcome, outcome == NackOutcome::kRetried ? item.retry_at : std::nullopt};
    hand_over_.lease_ended(item.topic);
  }
}

// ---- give back

void Leases::give_back(std::span<const GiveBackItem> items, Reply<uint64_t> reply) {
  if (const Status size = check_batch("give_back", items.size()); !size)
    return context_.refuse(reply, size.error());
  std::vector<NackRequest> requests;
  std::vector<TopicPtr> topics;
  for (const GiveBackItem& item : items) {
    const Result<LeaseRef> lease = parse_lease(item.lease);
    if (!lease.ok()) continue;
    NackRequest& request = requests.emplace_back();
    request.lease = *lease;
    request.retry_at = item.at;
    request.uncounted = true;
    topics.push_back(context_.topics.find(lease->topic));
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
    const Result<LeaseRef> lease = parse_lease(item.lease);
    const Status duration = item.duration ? check_lease(*item.duration) : Status{};
    if (!lease.ok() || !duration.ok()) {
      results.emplace_back(in_verb("extend", lease.ok() ? duration.error() : lease.error()));
      places.leave_out();
      continue;
    }
    const TopicRun& run = add_to_runs(runs, last, lease->topic, context_.topics);
    const Moment until = saturating_add(context_.now, item.duration.value_or(settings_of(run.topic).lease));
    places.keep();
    results.emplace_back(until);
    // Without a duration the lease must not become shorter: the current one may be long.
    requests.push_back({*lease, until, !item.duration});
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

void Leases::expire(std::vector<LeaseInfo> leases) {
  std::vector<NackRequest> requests;
  requests.reserve(leases.size());
  for (const LeaseInfo& info : leases) {
    const Verdict verdict =
        judge({.options = info.options, .attempts = info.attempts},
              settings_of(context_.topics.find(info.topic)), context_.now, expired_random_.next());
    NackRequest& request = requests.emplace_back();
    request.lease = {info.topic, info.lease};
    request.retry_at = verdict.retry_at;
    request.keep = verdict.keep;
    request.reason = kExpiredReason;
    request.expired = true;
  }
  auto kept = std::make_unique<std::vector<LeaseInfo>>(std::move(leases));
  context_.engine.nack(context_.now, requests,
                       [this, kept = std::move(kept)](const Result<std::vector<NackOutcome>>& outcomes) {
                         if (outcomes.ok()) return settle_expired(*kept, *outcomes);
                         std::move(kept->begin(), kept->end(), std::back_inserter(unprocessed_));
                         retry_at_ = context_.now + kPauseAfterError;
                       });
}

void Leases::settle_expired(const std::vector<LeaseInfo>& leases, const std::vector<NackOutcome>& outcomes) {
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i] == NackOutcome::kStale) continue;
    const TopicPtr topic = context_.topics.find(leases[i].topic);
    context_.topics.count(topic.get(), Tally::kExpired, 1);
    if (outcomes[i] == NackOutcome::kDead) context_.topics.count(topic.get(), Tally::kDied, 1);
    if (outcomes[i] == NackOutcome::kCancelled) context_.topics.count(topic.get(), Tally::kCancelled, 1);
    hand_over_.lease_ended(topic);
  }
}

Moment Leases::tick() {
  // If the clock went back, the pause must not become longer.
  if (!unprocessed_.empty()) retry_at_ = std::min(retry_at_, context_.now + kPauseAfterError);
  if (!unprocessed_.empty() && retry_at_ <= context_.now) {
    retry_at_ = kNever;
    expire(std::exchange(unprocessed_, {}));
  }
  return unprocessed_.empty() ? kNever : retry_at_;
}

}  // namespace delayq
