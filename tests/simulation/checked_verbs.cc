// The verbs that change jobs.
#include <algorithm>
#include <memory>
#include <utility>

#include "tests/simulation/checked_engine_run.h"

namespace delayq::simulation {
namespace {

constexpr size_t kNameOfBody = 24;  // every body of a simulation starts with a text of its own

template <class Item>
std::span<const Item> one(const Item& item) {
  return {&item, 1};
}

/// Requests with the leases by the names that the model gave them.
template <class Request>
class Translated {
 public:
  Translated(const Model& model, std::span<const Request> requests)
      : requests_(requests.begin(), requests.end()) {
    names_.reserve(requests.size());
    for (Request& request : requests_) {
      LeaseRef& lease = ref(request);
      names_.push_back(model.to_model(lease.lease));
      lease.lease = names_.back();
    }
  }

  const std::vector<Request>& all() const { return requests_; }

 private:
  static LeaseRef& ref(LeaseRef& lease) { return lease; }
  static LeaseRef& ref(auto& request) { return request.lease; }

  std::vector<Request> requests_;
  std::vector<std::string> names_;
};

template <class Request>
std::vector<std::string> names_of(std::span<const Request> requests) {
  std::vector<std::string> names;
  for (const Request& request : requests) names.emplace_back(request.lease.lease);
  return names;
}

/// Applies a batch item by item, so that the history has every step: a crash may fall between any two.
template <class Answer, class Items, class Each>
std::vector<Answer> each_alone(const Items& items, Each each) {
  std::vector<Answer> answers;
  for (const auto& item : items) {
    for (auto&& answer : each(item)) answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace

// ---- a job's life

void CheckedEngine::push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) {
  using Answers = std::vector<PushAnswer>;
  std::vector<std::string> bodies;
  std::vector<bool> unique;
  for (const NewJob& job : jobs) {
    bodies.emplace_back(job.body.substr(0, kNameOfBody));
    unique.push_back(job.unique_across_topics);
  }
  auto judge = [this, bodies = std::move(bodies), unique = std::move(unique)](Answers real,
                                                                              const Answers& expected) {
    promised_.insert(bodies.begin(), bodies.end());
    for (size_t i = 0; i < unique.size() && i < real.size() && i < expected.size(); ++i) {
      // Of several that are in the way, in several topics, any one may be told.
      const bool both =
          real[i].outcome == PushOutcome::kConflict && expected[i].outcome == PushOutcome::kConflict;
      if (unique[i] && both) real[i] = expected[i];
    }
    return difference(real, expected);
  };
  run<Answers>(
      {"push", now, Promise::kChanges, std::move(judge)}, std::move(reply),
      [&](Reply<Answers> done) { world_.real.push(now, jobs, std::move(done)); },
      [&](Operation operation) {
        return each_alone<PushAnswer>(jobs, [&](const NewJob& job) {
          return ask_model<Answers>(operation, Promise::kChanges, [&](Engine& engine, Reply<Answers> done) {
            engine.push(now, one(job), std::move(done));
          });
        });
      });
}

void CheckedEngine::restore(Moment now, std::span<const RestoreRequest> jobs,
                            Reply<std::vector<PushAnswer>> reply) {
  using Answers = std::vector<PushAnswer>;
  std::vector<std::string> bodies;
  for (const RestoreRequest& request : jobs) bodies.emplace_back(request.job.body.substr(0, kNameOfBody));
  auto judge = [this, bodies = std::move(bodies)](const Answers& real, const Answers& expected) {
    promised_.insert(bodies.begin(), bodies.end());
    return difference(real, expected);
  };
  run<Answers>(
      {"restore", now, Promise::kChanges, std::move(judge)}, std::move(reply),
      [&](Reply<Answers> done) { world_.real.restore(now, jobs, std::move(done)); },
      [&](Operation operation) {
        return each_alone<PushAnswer>(jobs, [&](const RestoreRequest& request) {
          Answers answers =
              ask_model<Answers>(operation, Promise::kChanges, [&](Engine& engine, Reply<Answers> done) {
                engine.restore(now, one(request), std::move(done));
              });
          return answers;
        });
      });
}

std::string CheckedEngine::judge_take(const TakeAnswer& real, const TakeAnswer& expected) {
  if (std::string wrong = difference(real, expected); !wrong.empty()) return wrong;
  for (size_t i = 0; i < real.jobs.size(); ++i) {
    if (real.jobs[i].lease.empty() != expected.jobs[i].lease.empty())
      return "a lease where none is due, or none";
    if (real.jobs[i].lease.empty()) continue;
    const std::string name = world_.model.to_model(real.jobs[i].lease);
    if (name == expected.jobs[i].lease) continue;  // it ran out on the way, and that was told first
    if (world_.model.is_guessed(real.jobs[i].lease)) continue;
    if (name != "unknown") return "a lease that was given out before";
    world_.model.pair_leases(real.jobs[i].lease, expected.jobs[i].lease);
    if (world_.witness.tracing()) {
      world_.witness.say(
          fmt::format("  engine: lease {} is the model's {}", real.jobs[i].lease, expected.jobs[i].lease));
    }
  }
  return {};
}

void CheckedEngine::take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) {
  if (std::string wrong = world_.may_take(request); !wrong.empty()) fail("take", wrong);
  const Promise promise = request.auto_ack ? Promise::kChanges : Promise::kNothing;
  const auto ask = [&](Engine& engine, Reply<TakeAnswer> done) {
    engine.take(now, request, std::move(done));
  };
  auto judge = [this](const TakeAnswer& real, const TakeAnswer& expected) {
    return judge_take(real, expected);
  };
  run<TakeAnswer>(
      {"take", now, promise, std::move(judge)}, std::move(reply),
      [&](Reply<TakeAnswer> done) { ask(world_.real, std::move(done)); },
      [&](Operation operation) {
        TakeAnswer expected = ask_model<TakeAnswer>(operation, promise, ask);
        // Of several that are done at once, the last may push the first out of those that are kept.
        for (const TakenJob& taken : expected.jobs) {
          if (!request.auto_ack) break;
          world_.model.passed_through(operation, {std::string(taken.job.topic), std::string(taken.job.id)},
                                      JobState::kDone, request.keep_done.until, now);
        }
        return expected;
      });
}

void CheckedEngine::ack(Moment now, std::span<const AckRequest> leases,
                        Reply<std::vector<AckOutcome>> reply) {
  using Answers = std::vector<AckOutcome>;
  auto judge = [this, names = names_of(leases)](const Answers& real, const Answers& expected) {
    promised_.insert(names.begin(), names.end());
    return difference(real, expected);
  };
  run<Answers>(
      {"ack", now, Promise::kChanges, std::move(judge)}, std::move(reply),
      [&](Reply<Answers> done) { world_.real.ack(now, leases, std::move(done)); },
      [&](Operation operation) {
        const Translated<AckRequest> ours(world_.model, leases);
        return each_alone<AckOutcome>(ours.all(), [&](const AckRequest& request) {
          return ask_model<Answers>(operation, Promise::kChanges, [&](Engine& engine, Reply<Answers> done) {
            engine.ack(now, one(request), std::move(done));
          });
        });
      });
}

void CheckedEngine::nack(Moment now, std::span<const NackRequest> leases,
                         Reply<std::vector<NackOutcome>> reply) {
  for (const NackRequest& request : leases) {
    if (request.expired) world_.model.settle_lease(request.lease.lease);
  }
  if (!failed_ && std::any_of(leases.begin(), leases.end(), [this](const NackRequest& request) {
        return request.expired && world_.model.to_model(request.lease.lease) == "unknown";
      })) {
    return nack_strangers(now, leases, std::move(reply));
  }
  using Answers = std::vector<NackOutcome>;
  auto judge = [this, names = names_of(leases)](const Answers& real, const Answers& expected) {
    promised_.insert(names.begin(), names.end());
    return difference(real, expected);
  };
  run<Answers>(
      {"nack", now, Promise::kChanges, std::move(judge)}, std::move(reply),
      [&](Reply<Answers> done) { world_.real.nack(now, leases, std::move(done)); },
      [&](Operation operation) {
        const Translated<NackRequest> ours(world_.model, leases);
        return each_alone<NackOutcome>(ours.all(), [&](const NackRequest& request) {
          return ask_model<Answers>(operation, Promise::kChanges, [&](Engine& engine, Reply<Answers> done) {
            engine.nack(now, one(request), std::move(done));
          });
        });
      });
}

void CheckedEngine::extend(Moment now, std::span<const ExtendRequest> leases,
                           Reply<std::vector<ExtendAnswer>> reply) {
  const Translated<ExtendRequest> ours(world_.model, leases);
  run_same<std::vector<ExtendAnswer>>(
      "extend", now, Promise::kChanges, std::move(reply),
      [&](Engine& engine, Reply<std::vector<ExtendAnswer>> done) {
        engine.extend(now, &engine == &world_.real ? leases : std::span(ours.all()), std::move(done));
      });
}

// ---- by id, by group, by topic

void CheckedEngine::cancel(Moment now, std::span<const JobRef> jobs,
                           Reply<std::vector<CancelOutcome>> reply) {
  run_same<std::vector<CancelOutcome>>("cancel", now, Promise::kChanges, std::move(reply),
                                       [&](Engine& engine, Reply<std::vector<CancelOutcome>> done) {
                                         engine.cancel(now, jobs, std::move(done));
                                       });
}

void CheckedEngine::cancel_group(Moment now, const GroupCancelRequest& request,
                                 Reply<GroupCancelAnswer> reply) {
  run_same<GroupCancelAnswer>("cancel_group", now, Promise::kChanges, std::move(reply),
                              [&](Engine& engine, Reply<GroupCancelAnswer> done) {
                                // Cursors are each engine's own. The model starts again: what it has
                                // cancelled is no longer in the group.
                                GroupCancelRequest its = request;
                                if (&engine != &world_.real) its.cursor = {};
                                engine.cancel_group(now, its, std::move(done));
                              });
}

void CheckedEngine::reschedule(Moment now, std::span<const RescheduleRequest> jobs,
                               Reply<std::vector<RescheduleOutcome>> reply) {
  using Answers = std::vector<RescheduleOutcome>;
  auto judge = [](const Answers& real, const Answers& expected) { return difference(real, expected); };
  run<Answers>(
      {"reschedule", now, Promise::kChanges, judge}, std::move(reply),
      [&](Reply<Answers> done) { world_.real.reschedule(now, jobs, std::move(done)); },
      [&](Operation operation) {
        return each_alone<RescheduleOutcome>(jobs, [&](const RescheduleRequest& job) {
          return ask_model<Answers>(operation, Promise::kChanges, [&](Engine& engine, Reply<Answers> done) {
            engine.reschedule(now, one(job), std::move(done));
          });
        });
      });
}

void CheckedEngine::redrive(Moment now, std::string_view topic, std::span<const std::string_view> ids,
                            Reply<uint64_t> reply) {
  run_same<uint64_t>(
      "redrive", now, Promise::kChanges, std::move(reply),
      [&](Engine& engine, Reply<uint64_t> done) { engine.redrive(now, topic, ids, std::move(done)); });
}

void CheckedEngine::redrive_oldest(Moment now, std::string_view topic, uint32_t max, Reply<uint64_t> reply) {
  run_same<uint64_t>(
      "redrive_oldest", now, Promise::kChanges, std::move(reply),
      [&](Engine& engine, Reply<uint64_t> done) { engine.redrive_oldest(now, topic, max, std::move(done)); });
}

void CheckedEngine::purge(Moment now, std::string_view topic, JobState state, uint32_t max,
                          Reply<uint64_t> reply) {
  run_same<uint64_t>(
      "purge", now, Promise::kRemovals, std::move(reply),
      [&](Engine& engine, Reply<uint64_t> done) { engine.purge(now, topic, state, max, std::move(done)); });
}

void CheckedEngine::trim(Moment now, const TrimRequest& request, Reply<TrimAnswer> reply) {
  // Cursors are each engine's own; the queue has one walk at a time.
  auto judge = [](const TrimAnswer& real, const TrimAnswer& expected) {
    if (real.cursor.empty() != expected.cursor.empty())
      return fmt::format("goes on at '{}', should at '{}'", real.cursor, expected.cursor);
    return difference(real.forgotten, expected.forgotten);
  };
  run<TrimAnswer>(
      {"trim", now, Promise::kRemovals, judge}, std::move(reply),
      [&](Reply<TrimAnswer> done) { world_.real.trim(now, request, std::move(done)); },
      [&](Operation operation) {
        TrimRequest same = request;
        same.cursor = request.cursor.empty() ? std::string_view{} : trim_cursor_;
        TrimAnswer expected = ask_model<TrimAnswer>(
            operation, Promise::kRemovals,
            [&](Engine& engine, Reply<TrimAnswer> done) { engine.trim(now, same, std::move(done)); });
        trim_cursor_ = expected.cursor;
        return expected;
      });
}

}  // namespace delayq::simulation
