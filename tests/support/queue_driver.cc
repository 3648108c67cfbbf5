#include "tests/support/queue_driver.h"

namespace delayq::support {

namespace {

// Far more than any queue needs for one reply: if the limit is reached, the reply never comes.
constexpr int kMostQueuePolls = 100'000;
constexpr uint64_t kSeed = 42;

}  // namespace

std::vector<Taken> seen(const PopAnswer& answer) {
  std::vector<Taken> jobs;
  jobs.reserve(answer.jobs.size());
  for (const TakenJob& taken : answer.jobs) jobs.push_back({std::string{taken.lease}, seen(taken.job)});
  return jobs;
}

const std::vector<Taken>& PendingPop::jobs() const {
  if (!answered()) throw std::logic_error("the pop is not answered yet");
  if (!(*answer_)->ok())
    throw std::logic_error("the pop was answered with " + to_string((*answer_)->error()));
  return ***answer_;
}

QueueDriver::QueueDriver(Engine& engine, QueueConfig config, std::function<bool()> pump)
    : pump_(std::move(pump)), queue_(std::make_unique<Queue>(engine, std::move(config), kSeed)) {
  must<void>("start", [&](auto reply) { queue_->start(now_, std::move(reply)); });
}

void QueueDriver::wait_for(std::string_view name, const std::function<bool()>& done) {
  for (int polls = 0; polls < kMostQueuePolls; ++polls) {
    queue_->poll(now_);
    if (done()) return;
    if (pump_) pump_();
  }
  throw std::runtime_error(std::string{name} + " was never answered");
}

Moment QueueDriver::run_to(Moment moment) {
  now_ = moment;
  for (int rounds = 0; rounds < kMostQueuePolls; ++rounds) {
    const Moment next = queue_->tick(now_);
    bool any = queue_->poll(now_);
    any |= pump_ && pump_();
    any |= queue_->poll(now_);
    if (!any && next > now_) return next;
  }
  throw std::runtime_error("the queue does not come to rest");
}

// ---- producers

Result<PushReceipt> QueueDriver::try_push(const PushRequest& request) {
  // The view in the receipt would be invalid without the report; push() returns the id.
  PushReport report = must<PushReport>("push", [&](auto reply) {
    queue_->push(now_, {&request, 1}, std::move(reply));
  });
  Result<PushReceipt> result = std::move(report.jobs.at(0));
  if (result.ok()) result->id = {};
  return result;
}

std::string QueueDriver::push(const PushRequest& request) {
  const PushReport report = must<PushReport>("push", [&](auto reply) {
    queue_->push(now_, {&request, 1}, std::move(reply));
  });
  const Result<PushReceipt>& receipt = report.jobs.at(0);
  if (!receipt.ok()) throw std::runtime_error("push answered " + to_string(receipt.error()));
  return std::string{receipt->id};
}

CancelOutcome QueueDriver::cancel(std::string_view topic, std::string_view id) {
  const JobRef job{topic, id};
  const auto results = must<std::vector<Result<CancelOutcome>>>("cancel", [&](auto reply) {
    queue_->cancel(now_, {&job, 1}, std::move(reply));
  });
  return results.at(0).value();
}

GroupCancelAnswer QueueDriver::cancel_group(std::string_view group, TopicPatterns topics) {
  return must<GroupCancelAnswer>(
      "cancel_group", [&](auto reply) { queue_->cancel_group(now_, group, topics, std::move(reply)); });
}

RescheduleOutcome QueueDriver::reschedule(const RescheduleItem& item) {
  const auto results = must<std::vector<Result<RescheduleOutcome>>>("reschedule", [&](auto reply) {
    queue_->reschedule(now_, {&item, 1}, std::move(reply));
  });
  return results.at(0).value();
}

// ---- consumers

std::vector<Taken> QueueDriver::pop(std::string_view topic, uint32_t count) {
  return pop(PopRequest{.topics = {&topic, 1}, .count = count});
}

std::vector<Taken> QueueDriver::pop(const PopRequest& request) {
  return seen(must<PopAnswer>("pop", [&](auto reply) { queue_->pop(now_, request, std::move(reply)); }));
}

Taken QueueDriver::pop_one(std::string_view topic) {
  std::vector<Taken> jobs = pop(topic);
  if (jobs.size() != 1) throw std::runtime_error("no job to pop from " + std::string{topic});
  return std::move(jobs.front());
}

PendingPop QueueDriver::begin_pop(const PopRequest& request) {
  PendingPop pending;
  pending.waiter_ = queue_->pop(now_, request, [answer = pending.answer_](const Result<PopAnswer>& popped) {
    if (answer->has_value()) throw std::logic_error("pop answered twice");
    if (popped.ok()) {
      answer->emplace(seen(*popped));
    } else {
      answer->emplace(popped.error());
    }
  });
  if (pending.answered()) throw std::logic_error("answered from inside the call that asked");
  return pending;
}

PendingPop QueueDriver::begin_pop(std::string_view topic, Millis wait, uint32_t count) {
  return begin_pop(PopRequest{.topics = {&topic, 1}, .count = count, .wait = wait});
}

Status QueueDriver::ack(std::string_view lease) {
  const AckItem item{.lease = lease};
  auto results = must<std::vector<Status>>("ack", [&](auto reply) {
    queue_->ack(now_, {&item, 1}, std::move(reply));
  });
  return std::move(results.at(0));
}

Result<NackReceipt> QueueDriver::nack(const NackItem& item) {
  auto results = must<std::vector<Result<NackReceipt>>>("nack", [&](auto reply) {
    queue_->nack(now_, {&item, 1}, std::move(reply));
  });
  return std::move(results.at(0));
}

Result<Moment> QueueDriver::extend(const ExtendItem& item) {
  auto results = must<std::vector<Result<Moment>>>("extend", [&](auto reply) {
    queue_->extend(now_, {&item, 1}, std::move(reply));
  });
  return std::move(results.at(0));
}

// ---- reading

std::optional<SeenJob> QueueDriver::get(std::string_view topic, std::string_view id) {
  const auto found = must<std::optional<FoundJob>>("get", [&](auto reply) {
    queue_->get(now_, {topic, id}, std::move(reply));
  });
  if (!found) return std::nullopt;
  return seen(found->job);
}

JobState QueueDriver::state_of(std::string_view topic, std::string_view id) {
  const std::optional<SeenJob> job = get(topic, id);
  if (!job) throw std::runtime_error("no such job: " + std::string{topic} + "/" + std::string{id});
  return job->state;
}

TopicStats QueueDriver::stats(std::string_view topic) {
  return must<TopicStats>("stats", [&](auto reply) { queue_->stats(now_, topic, std::move(reply)); });
}

TotalStats QueueDriver::totals() {
  return must<TotalStats>("totals", [&](auto reply) { queue_->totals(now_, std::move(reply)); });
}

// ---- settings

void QueueDriver::set(std::string_view name, Settings settings) {
  must<void>("set_settings",
             [&](auto reply) { queue_->set_settings(now_, name, std::move(settings), std::move(reply)); });
}

void QueueDriver::pause(std::string_view topic) {
  must<void>("pause", [&](auto reply) { queue_->pause(now_, topic, std::move(reply)); });
}

void QueueDriver::resume(std::string_view topic) {
  must<void>("resume", [&](auto reply) { queue_->resume(now_, topic, std::move(reply)); });
}

}  // namespace delayq::support
