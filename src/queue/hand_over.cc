#include "queue/hand_over.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "core/text.h"
#include "queue/leases.h"

namespace delayq {

namespace {

constexpr Millis kAfterConsumers = std::chrono::seconds{1};

void append(PopAnswer& answer, TakeAnswer taken) {
  answer.is_cut = taken.is_cut;
  if (taken.jobs.empty()) return;
  if (answer.jobs.empty()) {
    answer.jobs = std::move(taken.jobs);
  } else {
    answer.jobs.insert(answer.jobs.end(), taken.jobs.begin(), taken.jobs.end());
  }
  answer.storage.push_back(std::move(taken.storage));
}

/// Whether the topic's jobs for that outlet are delivered, not popped.
bool is_delivered(const TopicState& topic, Outlet outlet) {
  return outlet == Outlet::kCallback || topic.settings->delivery != Delivery::kPull;
}

std::string_view where_jobs_go(Delivery delivery) {
  if (goes_to_redis(delivery)) return "written to Redis";
  return delivery == Delivery::kKafkaTopic ? "written to Kafka" : "called back";
}

Error not_popped(const TopicState& topic) {
  return in_verb(
      "pop",
      invalid("topic",
              fmt::format("topic {} has delivery = {}: its jobs are {} and cannot be popped; set delivery "
                          "to pull to pop them",
                          quote(topic.name), name_of(topic.settings->delivery),
                          where_jobs_go(topic.settings->delivery))));
}

const TopicPtr& topic_of(const Waiter& waiter, const Job& job) {
  return *std::find_if(waiter.topics.begin(), waiter.topics.end(),
                       [&job](const TopicPtr& topic) { return topic->name == job.topic; });
}

}  // namespace

// ---- requests

Status HandOver::check(const PopRequest& request) const {
  if (Status status = context_.check_running("pop"); !status) return status;
  if (Status status = check_count("topics", request.topics.size(), Limits::kPopTopics); !status)
    return status;
  if (Status status = check_count("count", request.count, Limits::kPopJobs); !status) return status;
  if (Status status = check_wait(request.wait); !status) return status;
  if (request.lease) {
    if (Status status = check_lease(*request.lease); !status) return status;
  }
  for (const std::string_view topic : request.topics) {
    if (Status status = check_topic(topic); !status) return status;
  }
  if (waiters_.size() < context_.config.limits.waiters) return {};
  return Error{ErrorCode::kOverloaded, "pop",
               fmt::format("{} consumers are waiting: that is the bound", waiters_.size()), kAfterConsumers};
}

WaiterId HandOver::pop(const PopRequest& request, Reply<PopAnswer> reply) {
  if (Status status = check(request); !status) {
    context_.refuse(reply, in_verb("pop", status.error()));
    return 0;
  }
  Waiter& waiter = waiters_.add();
  for (const std::string_view name : request.topics) {
    TopicPtr topic = context_.topics.find(name);
    if (topic == nullptr) {
      if (const Status room = admission_.admit_topic("pop"); !room) {
        waiters_.remove(waiter);
        context_.refuse(reply, room.error());
        return 0;
      }
      topic = context_.topics.open(name, context_.now);
    }
    if (is_delivered(*topic, Outlet::kTopic)) {
      waiters_.remove(waiter);
      context_.refuse(reply, not_popped(*topic));
      return 0;
    }
    topic->last_used = context_.now;
    const bool is_named_again =
        std::find(waiter.topics.begin(), waiter.topics.end(), topic) != waiter.topics.end();
    if (!is_named_again) waiter.topics.push_back(std::move(topic));
  }
  waiter.count = request.count;
  waiter.lease = request.lease;
  waiter.auto_ack = request.auto_ack;
  waiter.may_wait = request.wait > Millis::zero();
  waiter.give_up = saturating_add(context_.now, request.wait);
  waiter.reply = std::move(reply);
  if (waiter.topics.size() > 1 || context_.engine.has_parts()) waiter.steps = context_.begin_steps();
  const WaiterId id = waiter.id;
  start_walk(waiter);
  return id;
}

void HandOver::take_for_delivery(const DeliveryRequest& request, Reply<PopAnswer> reply) {
  if (const Status status = context_.check_running("delivery"); !status)
    return context_.refuse(reply, status.error());
  Waiter& waiter = waiters_.add();
  waiter.give_up = context_.now;
  waiter.reply = std::move(reply);
  const TopicPtr topic = context_.topics.find(request.topic);
  if (topic == nullptr || request.count == 0 || !is_delivered(*topic, request.outlet)) return deliver(waiter);
  topic->last_used = context_.now;
  waiter.topics.push_back(topic);
  waiter.count = std::min(request.count, Limits::kPopJobs);
  waiter.lease = request.lease;
  waiter.delivers = true;
  waiter.outlet = request.outlet;
  start_walk(waiter);
}

bool HandOver::drop(WaiterId id) {
  Waiter* waiter = waiters_.find(id);
  if (waiter == nullptr || waiter->gone) return false;
  if (waiter->idle) {
    waiters_.unpark(*waiter);
    waiters_.remove(*waiter);
  } else if (waiter->leaving) {
    waiters_.remove(*waiter);
  } else {
    waiter->gone = true;
    waiter->reply = nullptr;
  }
  return true;
}

// ---- trying

void HandOver::begin_walk(Waiter& waiter) {
  waiter.walking = true;
  ++walkers_;
  waiter.at = 0;
  waiter.seen = wakes_;
}

void HandOver::start_walk(Waiter& waiter) {
  begin_walk(waiter);
  walk(waiter);
}

void HandOver::walk(Waiter& waiter) {
  for (; waiter.at < waiter.topics.size() && !waiter.gone; ++waiter.at) {
    TopicState& topic = *waiter.topics[waiter.at];
    // A waiter that can wait does not overtake those already in line: the topic's next job is theirs.
    if (waiter.may_wait && waiter.give_up > context_.now && !topic.idle.empty()) continue;
    const uint32_t count = allowed(topic, waiter.outlet, waiter.count - waiter.found.jobs.size());
    if (count == 0 && topic.lent_tokens > 0 && !topic.settings->paused) return held_.push_back(waiter.id);
    if (waiter.delivers && count < waiter.count) note_unserved(waiter, waiter.topics[waiter.at]);
    if (count > 0) return take(waiter, topic, count);
  }
  end_walk(waiter);
  if (waiter.found.jobs.empty()) {
    found_nothing(waiter);
  } else {
    deliver(waiter);
  }
}

void HandOver::end_walk(Waiter& waiter) {
  if (waiter.walking) --walkers_;
  waiter.walking = false;
  waiter.steps.end();
}

void HandOver::wake(const TopicPtr& topic, Outlet outlet) {
  if (is_delivered(*topic, outlet)) return notify_listener(*topic, outlet);
  wake_consumers(topic);
}

void HandOver::notify_listener(TopicState& topic, Outlet outlet) {
  if (!is_delivered(topic, outlet)) return;
  topic.delivery_waits[static_cast<size_t>(outlet)] = false;
  if (listener_ != nullptr) listener_->on_deliverable(topic.name, outlet);
}

void HandOver::note_unserved(Waiter& waiter, const TopicPtr& topic) {
  topic->delivery_waits[static_cast<size_t>(waiter.outlet)] = true;
  if (is_limited(*topic)) plan_refill(topic);
}

void HandOver::limit_lifted(const TopicPtr& topic) {
  for (const Outlet outlet : {Outlet::kTopic, Outlet::kCallback}) {
    if (topic->delivery_waits[static_cast<size_t>(outlet)]) notify_listener(*topic, outlet);
  }
  wake_consumers(topic);
}

void HandOver::settings_changed(const TopicPtr& topic) {
  for (const Outlet outlet : {Outlet::kTopic, Outlet::kCallback}) notify_listener(*topic, outlet);
  if (!is_delivered(*topic, Outlet::kTopic)) return wake_consumers(topic);
  topic->last_wake = ++wakes_;  // Busy waiters will check it, too.
  while (!topic->idle.empty()) {
    Waiter& waiter = *topic->idle.begin()->second;
    waiters_.unpark(waiter);
    fail(waiter, not_popped(*topic));
  }
}

void HandOver::all_settings_changed() {
  for (size_t place = 0; place < context_.topics.size(); ++place)
    settings_changed(TopicPtr{context_.topics.at(place)});
}

void HandOver::wake_consumers(const TopicPtr& topic) {
  // Also when the line is empty: busy waiters will check it.
  topic->last_wake = ++wakes_;
  serve(topic, 1);
}

void HandOver::serve(const TopicPtr& topic, int consumers) {
  for (; consumers > 0 && !topic->idle.empty(); --consumers) {
    Waiter& waiter = *topic->idle.begin()->second;
    const uint32_t count = allowed(*topic, waiter.outlet, waiter.count);
    if (count == 0) return plan_refill(topic);
    waiters_.unpark(waiter);
    waiter.seen = wakes_;
    waiter.at = static_cast<size_t>(std::find(waiter.topics.begin(), waiter.topics.end(), topic) -
                                    waiter.topics.begin());
    take(waiter, *topic, count);
  }
  // The line is empty now, but a walking waiter may have skipped this topic because of the line. The wake
  // makes it try this topic again before it waits.
  if (consumers > 0 && walkers_ > 0) topic->last_wake = ++wakes_;
}

void HandOver::take(Waiter& waiter, TopicState& topic, uint32_t count) {
  const EffectiveSettings& settings = *topic.settings;
  waiter.asked = count;
  waiter.took_after = wakes_;
  waiter.limited = settings.rate.count != 0;
  TakeRequest request;
  request.topic = topic.name;
  request.outlet = waiter.outlet;
  request.count = count;
  request.max_bytes = Limits::kPopBytes - waiter.found_bytes;
  request.lease_until = saturating_add(context_.now, waiter.lease.value_or(settings.lease));
  request.own_leases = !waiter.lease;
  request.max_reserved = settings.concurrency;
  request.auto_ack = waiter.auto_ack;
  if (waiter.auto_ack) request.keep_done = keep_from(context_.now, settings.keep_done);
  context_.engine.take(context_.now, request,
                       [this, &waiter](Result<TakeAnswer> result) { taken(waiter, std::move(result)); });
}

void HandOver::taken(Waiter& waiter, Result<TakeAnswer> result) {
  const TopicPtr topic = waiter.topics[waiter.at];
  const size_t got = result.ok() ? result->jobs.size() : 0;
  const bool got_all = got == waiter.asked;
  const bool was_walking = waiter.walking;
  if (waiter.limited) {
    const bool is_dry = result.ok() && !got_all && !result->is_cut && topic->last_wake <= waiter.took_after;
    end_loan(topic, waiter.asked, waiter.asked - static_cast<uint32_t>(got), is_dry, waiter.outlet);
  }
  if (!result.ok()) {
    end_walk(waiter);
    fail(waiter, result.error());
    return serve(topic, 1);  // The next in line should get the error, too, instead of waiting in vain.
  }
  for (const TakenJob& job : result->jobs) waiter.found_bytes += job.job.body.size();
  append(waiter.found, std::move(*result));
  if (waiter.delivers && !got_all && topic->settings->concurrency != 0) note_unserved(waiter, topic);
  if (waiter.found.is_cut) return cut(waiter, topic);
  if (was_walking && waiter.found.jobs.size() < waiter.count) {
    ++waiter.at;
    // This topic has no more jobs, but the answer is full before the other topics were tried.
    waiter.found.is_cut = waiter.found_bytes >= Limits::kPopBytes && waiter.at < waiter.topics.size();
    if (!waiter.found.is_cut) return walk(waiter);
  }
  end_walk(waiter);
  if (waiter.found.jobs.empty()) {
    found_nothing(waiter);
  } else {
    deliver(waiter);
  }
  if (got_all && !was_walking) serve(topic, 2);
}

void HandOver::cut(Waiter& waiter, const TopicPtr& topic) {
  const bool was_walking = waiter.walking;
  const bool is_empty = waiter.found.jobs.empty();
  if (is_empty && !waiter.gone && !context_.stopping) return ask_again(waiter, topic);
  end_walk(waiter);
  // Before the answer, so that the delivery loop knows that it must take again, however few jobs it got.
  if (waiter.delivers) notify_listener(*topic, waiter.outlet);
  waiter.found.is_cut = !is_empty;
  if (is_empty) {
    found_nothing(waiter);
  } else {
    deliver(waiter);
  }
  // The line is served later, by poll(): takes that were cut to nothing precede it and are repeated first.
  if (!was_walking) not_dry_.push_back(topic);
}

void HandOver::ask_again(Waiter& waiter, const TopicPtr& topic) {
  if (waiter.walking) return walk(waiter);
  const uint32_t count = allowed(*topic, waiter.outlet, waiter.count);
  if (count > 0) return take(waiter, *topic, count);
  found_nothing(waiter);
}

void HandOver::found_nothing(Waiter& waiter) {
  if (waiter.gone || !waiter.may_wait || waiter.give_up <= context_.now || context_.stopping)
    return deliver(waiter);
  for (const TopicPtr& topic : waiter.topics) {
    if (is_delivered(*topic, Outlet::kTopic)) return fail(waiter, not_popped(*topic));
  }
  const auto was_woken = [&waiter](const TopicPtr& topic) { return topic->last_wake > waiter.seen; };
  if (std::any_of(waiter.topics.begin(), waiter.topics.end(), was_woken)) {
    begin_walk(waiter);
    // The waiters that are held for the tokens of this one come first. Otherwise it could take the same
    // tokens again and again: the held waiters are what wakes it.
    return held_.empty() ? walk(waiter) : held_.push_back(waiter.id);
  }
  waiters_.park(waiter);
  for (const TopicPtr& topic : waiter.topics) {
    if (is_limited(*topic)) plan_refill(topic);
  }
}

// ---- handing over

void HandOver::deliver(Waiter& waiter) {
  if (waiter.gone) {
    give_back(waiter);
    return waiters_.remove(waiter);
  }
  if (!context_.may_answer) {
    waiter.leaving = true;
    leaving_.push_back(waiter.id);
    return;
  }
  Arena* storage = waiter.found.storage.empty() ? nullptr : &waiter.found.storage.front();
  for (TakenJob& taken : waiter.found.jobs) {
    TopicState& topic = *topic_of(waiter, taken.job);
    // A job that was pushed after its due time is late only since its push.
    const Millis late = context_.now - std::max(taken.job.due, taken.job.pushed);
    topic.lateness.record(late);
    context_.topics.total_lateness().record(late);
    context_.topics.count(&topic, Tally::kPopped, 1);
    if (waiter.auto_ack) continue;
    const Attempt attempt = attempt_of(taken.job.options, taken.job.attempts, random_);
    taken.lease = lease_text({taken.job.topic, taken.lease}, attempt, *storage);
  }
  Reply<PopAnswer> reply = std::move(waiter.reply);
  PopAnswer found = std::move(waiter.found);
  waiters_.remove(waiter);
  context_.answer(reply, Result<PopAnswer>{std::move(found)});
}

void HandOver::fail(Waiter& waiter, const Error& error) {
  if (waiter.gone || !waiter.found.jobs.empty()) return deliver(waiter);
  Reply<PopAnswer> reply = std::move(waiter.reply);
  waiters_.remove(waiter);
  context_.refuse(reply, error);
}

void HandOver::give_back(Waiter& waiter) {
  if (waiter.found.jobs.empty() || waiter.auto_ack) return;
  std::vector<NackRequest> requests;
  for (const TakenJob& taken : waiter.found.jobs) {
    NackRequest& request = requests.emplace_back();
    request.lease = {taken.job.topic, taken.lease};
    request.retry_at = taken.job.due;
    request.uncounted = true;
  }
  // If this fails, the leases expire.
  context_.engine.nack(context_.now, requests,
                       [this](const Result<std::vector<NackOutcome>>&) { ++context_.leases_ended; });
}

// ---- limits

uint32_t HandOver::allowed(TopicState& topic, Outlet outlet, size_t wanted) {
  if (topic.settings->paused) return 0;
  const auto count = static_cast<uint32_t>(wanted);
  const Rate& rate = topic.settings->rate;
  if (rate.count == 0) return count;
  const uint32_t tokens = topic.tokens.take(rate, context_.now, count);
  if (tokens < count && topic.lent_tokens > 0) topic.is_starved[static_cast<size_t>(outlet)] = true;
  topic.lent_tokens += tokens;
  return tokens;
}

void HandOver::end_loan(const TopicPtr& topic, uint32_t lent, uint32_t unused, bool is_dry, Outlet outlet) {
  topic->lent_tokens -= lent;
  topic->tokens.give_back(unused);
  has_loan_ended_ = true;
  // The other waiters of this outlet would find no job either. If they were woken, two of them could pass
  // the tokens to each other forever.
  if (is_dry) topic->is_starved[static_cast<size_t>(outlet)] = false;
  const std::array<bool, kOutletCount>& starved = topic->is_starved;
  if (unused > 0 && std::find(starved.begin(), starved.end(), true) != starved.end())
    repaid_.push_back(topic);
}

bool HandOver::is_limited(TopicState& topic) {
  const Rate& rate = topic.settings->rate;
  return !topic.settings->paused && rate.count != 0 &&
         topic.tokens.next_token(rate, context_.now) > context_.now;
}

void HandOver::plan_refill(const TopicPtr& topic) {
  if (topic->settings->paused) return;
  const Moment next = topic->tokens.next_token(topic->settings->rate, context_.now);
  if (topic->refill_at <= next) return;
  if (topic->refill_at != kNever) refills_.erase({topic->refill_at, topic->serial});
  topic->refill_at = next;
  refills_.emplace(std::pair{next, topic->serial}, topic);
}

void HandOver::wake_first_refill() {
  const TopicPtr topic = refills_.begin()->second;
  refills_.erase(refills_.begin());
  topic->refill_at = kNever;
  limit_lifted(topic);
}

void HandOver::lease_ended(const TopicPtr& topic) {
  ++context_.leases_ended;
  if (topic != nullptr && topic->settings->concurrency != 0) limit_lifted(topic);
}

// ---- running

Moment HandOver::tick() {
  while (waiters_.next_give_up() <= context_.now) {
    Waiter& waiter = *waiters_.first_to_give_up();
    waiters_.unpark(waiter);
    deliver(waiter);
  }
  while (!refills_.empty() && refills_.begin()->first.first <= context_.now) {
    wake_first_refill();
  }
  return std::min(waiters_.next_give_up(), refills_.empty() ? kNever : refills_.begin()->first.first);
}

void HandOver::clock_went_back(Millis by) {
  waiters_.clock_went_back(by);
  // The next tokens come at other moments now: every limited topic plans its refill again.
  for (size_t planned = refills_.size(); planned > 0; --planned) wake_first_refill();
}

bool HandOver::poll() {
  // As in most turns.
  if (leaving_.empty() && not_dry_.empty() && !has_loan_ended_) return false;
  const std::vector<WaiterId> leaving = std::exchange(leaving_, {});
  for (const WaiterId id : leaving) {
    if (Waiter* waiter = waiters_.find(id)) deliver(*waiter);
  }
  const std::vector<TopicPtr> not_dry = std::exchange(not_dry_, {});
  for (const TopicPtr& topic : not_dry) serve(topic, 2);
  const bool is_repaid = poll_loans();
  return !leaving.empty() || !not_dry.empty() || is_repaid;
}

bool HandOver::poll_loans() {
  if (!std::exchange(has_loan_ended_, false)) return false;
  // Walking waiters are not in a line, so each is continued here; the others are woken through their line.
  const std::vector<WaiterId> held = std::exchange(held_, {});
  for (const WaiterId id : held) {
    if (Waiter* waiter = waiters_.find(id)) walk(*waiter);
  }
  const std::vector<TopicPtr> repaid = std::exchange(repaid_, {});
  for (const TopicPtr& topic : repaid) {
    for (const Outlet outlet : {Outlet::kTopic, Outlet::kCallback}) {
      if (std::exchange(topic->is_starved[static_cast<size_t>(outlet)], false)) wake(topic, outlet);
    }
  }
  return !held.empty() || !repaid.empty();
}

void HandOver::dismiss() {
  while (Waiter* waiter = waiters_.first_to_give_up()) {
    waiters_.unpark(*waiter);
    deliver(*waiter);
  }
}

Waiter& Waiters::add() {
  auto made = std::make_unique<Waiter>();
  made->id = ++last_id_;
  Waiter& waiter = *made;
  all_.emplace(waiter.id, std::move(made));
  return waiter;
}

Waiter* Waiters::find(WaiterId id) {
  const auto found = all_.find(id);
  return found == all_.end() ? nullptr : found->second.get();
}

void Waiters::remove(Waiter& waiter) {
  assert(!waiter.idle);
  all_.erase(waiter.id);
}

void Waiters::park(Waiter& waiter) {
  waiter.idle = true;
  for (const TopicPtr& topic : waiter.topics) topic->idle.emplace(waiter.id, &waiter);
  give_ups_.emplace(waiter.give_up, waiter.id);
}

void Waiters::unpark(Waiter& waiter) {
  waiter.idle = false;
  for (const TopicPtr& topic : waiter.topics) topic->idle.erase(waiter.id);
  give_ups_.erase({waiter.give_up, waiter.id});
}

Waiter* Waiters::first_to_give_up() { return give_ups_.empty() ? nullptr : find(give_ups_.begin()->second); }

void Waiters::clock_went_back(Millis by) {
  give_ups_.clear();
  for (auto& [id, waiter] : all_) {
    waiter->give_up -= by;
    if (waiter->idle) give_ups_.emplace(waiter->give_up, id);
  }
}

}  // namespace delayq
