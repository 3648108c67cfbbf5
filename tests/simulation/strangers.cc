// Leases that nobody was told of.
//
// A job was handed out, the server died before the consumer heard of it, and the record of the lease
// survived. The lease runs out, the engine tells its name for the first time, and the queue answers with a
// nack. Which job it is of shows only afterwards: it is the one that has changed.
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "tests/simulation/checked_engine_run.h"
#include "tests/support/engine_driver.h"

namespace delayq::simulation {

std::vector<const memory::StoredJob*> CheckedEngine::find_strangers(std::string_view topic) const {
  std::vector<const memory::StoredJob*> found;
  for (const auto& [deadline, job] : world_.model.jobs().deadlines()) {
    if (job->topic == topic && job->until <= latest_ && !world_.model.has_name(job->lease))
      found.push_back(job);
  }
  return found;
}

/// Whether this is what became of `before` by a nack with that outcome.
static bool fits(const memory::StoredJob& before, const std::optional<support::SeenJob>& after,
                 const NackRequest& request, NackOutcome outcome) {
  switch (outcome) {
    case NackOutcome::kRetried:
      return after && is_live(after->state) && after->state != JobState::kReserved &&
             after->due == *request.retry_at;
    case NackOutcome::kDead:
      return !before.cancel_requested && (!after || after->state == JobState::kDead);
    case NackOutcome::kCancelled:
      return before.cancel_requested && !after;
    case NackOutcome::kStale:
      return false;
  }
  return false;
}

/// What the engine says of the job. A sector may be unreadable, once.
static std::optional<support::SeenJob> look_at(support::EngineDriver& driver, const memory::StoredJob& job) {
  const Result<std::optional<FoundJob>> first =
      driver.ask<std::optional<FoundJob>>("get", [&](Reply<std::optional<FoundJob>> reply) {
        driver.engine().get(driver.now(), {job.topic, job.id}, std::move(reply));
      });
  if (!first.ok()) return driver.get(job.topic, job.id);
  if (!*first) return std::nullopt;
  return support::seen((*first)->job);
}

void CheckedEngine::pair_stranger(Moment now, const NackRequest& request, NackOutcome outcome) {
  support::EngineDriver driver(world_.real, [this] { return world_.pump() ? true : throw MachineIsOff(); });
  driver.go_to(now);
  for (const memory::StoredJob* job : find_strangers(request.lease.topic)) {
    if (!fits(*job, look_at(driver, *job), request, outcome)) continue;
    world_.model.guess_lease(request.lease.lease, Model::name_of(job->lease));
    break;
  }
  for (const std::string& topic : driver.ready_news()) {
    for (const Outlet outlet : {Outlet::kTopic, Outlet::kCallback}) ready_.emplace(topic, outlet);
  }
  for (LeaseInfo& info : driver.expired_news()) expired_.push_back(std::move(info));
  keep_due(driver.schedule_news());
}

bool CheckedEngine::hear_answers() {
  constexpr int kEnough = 1000;  // changes may wait for a sync that only time brings
  for (int pumps = 0; pumps < kEnough && unanswered_ > 0; ++pumps) {
    world_.real.poll(*this);
    if (!world_.pump()) return false;
  }
  return true;
}

NackOutcome CheckedEngine::nack_in_model(Operation operation, Moment now, NackRequest request,
                                         const std::string& name) {
  using Answers = std::vector<NackOutcome>;
  request.lease.lease = name;
  return ask_model<Answers>(operation, Promise::kChanges,
                            [&](Engine& engine, Reply<Answers> done) {
                              engine.nack(now, {&request, 1}, std::move(done));
                            })
      .front();
}

/// Each request may be of any stranger of its topic, and one retries where another kills. Which kept jobs
/// make way for the dead depends on who dies first, so each of them does once.
std::vector<History::Change> CheckedEngine::imagine(Moment now, std::span<const NackRequest> requests) const {
  const auto is_unknown = [this](const NackRequest& request) {
    return world_.model.to_model(request.lease.lease) == "unknown";
  };
  std::vector<History::Change> changes;
  for (const NackRequest& request : requests) {
    if (!is_unknown(request)) continue;
    std::vector<std::string> names;
    for (const memory::StoredJob* job : find_strangers(request.lease.topic))
      names.push_back(Model::name_of(job->lease));
    const auto asked =
        static_cast<size_t>(std::count_if(requests.begin(), requests.end(), [&](const NackRequest& each) {
          return is_unknown(each) && each.lease.topic == request.lease.topic;
        }));
    for (size_t first = 0; first < names.size(); ++first) {
      auto more = world_.model.what_if([&](Engine& engine, const auto& note) {
        for (size_t i = 0; i < std::min(asked, names.size()); ++i) {
          NackRequest ours = request;
          ours.lease.lease = names[i];
          engine.nack(now, {&ours, 1}, [](const Result<std::vector<NackOutcome>>&) {});
          note();
        }
      });
      std::move(more.begin(), more.end(), std::back_inserter(changes));
      std::rotate(names.begin(), names.begin() + 1, names.end());
    }
  }
  return changes;
}

void CheckedEngine::nack_strangers(Moment now, std::span<const NackRequest> leases,
                                   Reply<std::vector<NackOutcome>> reply) {
  using Answers = std::vector<NackOutcome>;
  latest_ = std::max(latest_, now);
  world_.witness.say("  engine: nack of leases that nobody has heard of");
  const Operation operation = world_.model.begin();
  std::optional<Result<Answers>> answer =
      wait_for<Answers>("nack", [&](Reply<Answers> done) { world_.real.nack(now, leases, std::move(done)); });
  // A lease may have run out while the answer of its take was being read: that answer names its job.
  if (answer && !hear_answers()) answer.reset();
  Answers expected;
  std::vector<History::Change> in_doubt;
  const std::vector<History::Change> in_another_order = imagine(now, leases);
  for (size_t i = 0; i < leases.size(); ++i) {
    const NackRequest& request = leases[i];
    const bool is_known = world_.model.to_model(request.lease.lease) != "unknown";
    try {
      if (!is_known && answer && answer->ok()) pair_stranger(now, request, (**answer)[i]);
    } catch (const MachineIsOff&) {
      answer.reset();
    }
    if (!is_known && !(answer && answer->ok())) {
      // It may have happened to any of them: the model takes the first request for that of all.
      if (in_doubt.empty()) in_doubt = imagine(now, leases.subspan(i));
      for (const memory::StoredJob* job : find_strangers(request.lease.topic))
        nack_in_model(operation, now, request, Model::name_of(job->lease));
    }
    expected.push_back(nack_in_model(operation, now, request, world_.model.to_model(request.lease.lease)));
  }
  for (const History::Change& change : in_doubt) world_.model.may_have(operation, change);
  if (!answer) return;
  const Terms<Answers> terms{"nack", now, Promise::kChanges, [](const Answers& real, const Answers& should) {
                               return difference(real, should);
                             }};
  if (!judge(terms, operation, *answer, expected)) return recover_from(answer->error(), now);
  // Dead ones were all alike, so the model may have them in another order, and others made way for them.
  if (answer->ok() && !world_.witness.failed()) {
    for (const History::Change& change : in_another_order) {
      if (!change.job) world_.model.may_have(operation, change);
    }
    recover(now, false);
  }
  deliver(std::move(reply), std::move(*answer));
}

}  // namespace delayq::simulation
