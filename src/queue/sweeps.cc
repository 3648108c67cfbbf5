#include "queue/sweeps.h"

namespace delayq {

namespace {

/// Jobs per step: long enough to be worth a commit, short enough not to hold up anybody.
constexpr uint32_t kStep = 1'000;

}  // namespace

struct Sweeps::GroupSweep {
  std::string group;
  std::vector<std::string> topics;
  GroupCancelAnswer total;
  Reply<GroupCancelAnswer> reply;
  Steps steps;
};

struct Sweeps::TopicSweep {
  std::string topic;
  std::string error;             ///< to search for
  std::string cursor;            ///< of the search
  std::vector<JobState> states;  ///< still to purge; the last is next
  uint64_t total = 0;
  Reply<uint64_t> reply;
  Steps steps;
};

// ---- groups

void Sweeps::cancel_group(std::string_view group, TopicPatterns topics, Reply<GroupCancelAnswer> reply) {
  if (const Status status = check_group(group); !status) {
    return context_.refuse(reply, in_verb("cancel_group", status.error()));
  }
  auto sweep = std::make_unique<GroupSweep>();
  sweep->group = group;
  sweep->topics.assign(topics.begin(), topics.end());
  sweep->reply = std::move(reply);
  sweep->steps = context_.begin_steps();
  next_of_group(std::move(sweep));
}

void Sweeps::next_of_group(std::unique_ptr<GroupSweep> sweep) {
  const GroupCancelRequest request{sweep->group, sweep->topics, kStep};
  context_.engine.cancel_group(
      context_.now, request, [this, sweep = std::move(sweep)](const Result<GroupCancelAnswer>& step) mutable {
        if (!step.ok()) return context_.refuse(sweep->reply, step.error());
        sweep->total.cancelled += step->cancelled;
        sweep->total.reserved += step->reserved;
        count_cancelled(*step);
        if (step->cancelled + step->reserved == kStep) return next_of_group(std::move(sweep));
        context_.answer(sweep->reply, Result{sweep->total});
      });
}

void Sweeps::count_cancelled(const GroupCancelAnswer& step) {
  for (const auto& [name, cancelled] : step.cancelled_by_topic)
    context_.topics.count(context_.topics.find(name).get(), Tally::kCancelled, cancelled);
}

// ---- dead letters

void Sweeps::redrive(std::string_view topic, std::span<const std::string_view> ids, Reply<uint64_t> reply) {
  if (const Status size = check_batch("redrive", ids.size()); !size)
    return context_.refuse(reply, size.error());
  if (const Status status = check_topic(topic); !status) {
    return context_.refuse(reply, in_verb("redrive", status.error()));
  }
  for (const std::string_view id : ids) {
    if (const Status status = check_id(id); !status)
      return context_.refuse(reply, in_verb("redrive", status.error()));
  }
  context_.engine.redrive(context_.now, topic, ids, std::move(reply));
}

void Sweeps::redrive_all(std::string_view topic, Reply<uint64_t> reply) {
  if (const Status status = check_topic(topic); !status) {
    return context_.refuse(reply, in_verb("redrive", status.error()));
  }
  auto sweep = std::make_unique<TopicSweep>();
  sweep->topic = topic;
  sweep->steps = context_.begin_steps();
  sweep->reply = std::move(reply);
  next_redrive(std::move(sweep));
}

void Sweeps::next_redrive(std::unique_ptr<TopicSweep> sweep) {
  const std::string& topic = sweep->topic;
  context_.engine.redrive_oldest(context_.now, topic, kStep,
                                 [this, sweep = std::move(sweep)](const Result<uint64_t>& step) mutable {
                                   if (!step.ok()) return context_.refuse(sweep->reply, step.error());
                                   sweep->total += *step;
                                   if (*step == kStep) return next_redrive(std::move(sweep));
                                   context_.answer(sweep->reply, Result{sweep->total});
                                 });
}

void Sweeps::redrive_by_error(std::string_view topic, std::string_view error, Reply<uint64_t> reply) {
  Status status = check_topic(topic);
  if (status.ok()) status = check_reason(error);
  if (!status) return context_.refuse(reply, in_verb("redrive", status.error()));
  auto sweep = std::make_unique<TopicSweep>();
  sweep->topic = topic;
  sweep->steps = context_.begin_steps();
  sweep->error = error;
  sweep->reply = std::move(reply);
  next_search(std::move(sweep));
}

void Sweeps::next_search(std::unique_ptr<TopicSweep> sweep) {
  ListRequest request;
  request.topic = sweep->topic;
  request.state = JobState::kDead;
  request.outcome_contains = sweep->error;
  request.limit = Limits::kPageJobs;
  const std::string cursor = sweep->cursor;
  request.cursor = cursor;
  context_.engine.list(context_.now, request,
                       [this, sweep = std::move(sweep)](const Result<JobPage>& page) mutable {
                         if (!page.ok()) return context_.refuse(sweep->reply, page.error());
                         redrive_found(std::move(sweep), *page);
                       });
}

void Sweeps::redrive_found(std::unique_ptr<TopicSweep> sweep, const JobPage& page) {
  std::vector<std::string_view> ids;
  ids.reserve(page.jobs.size());
  for (const Job& job : page.jobs) ids.push_back(job.id);
  sweep->cursor = page.cursor;
  const std::string& topic = sweep->topic;
  context_.engine.redrive(context_.now, topic, ids,
                          [this, sweep = std::move(sweep)](const Result<uint64_t>& step) mutable {
                            if (!step.ok()) return context_.refuse(sweep->reply, step.error());
                            sweep->total += *step;
                            if (!sweep->cursor.empty()) return next_search(std::move(sweep));
                            context_.answer(sweep->reply, Result{sweep->total});
                          });
}

// ---- purge

void Sweeps::purge(std::string_view topic, std::optional<JobState> state, Reply<uint64_t> reply) {
  if (const Status status = check_topic(topic); !status) {
    return context_.refuse(reply, in_verb("purge", status.error()));
  }
  auto sweep = std::make_unique<TopicSweep>();
  sweep->topic = topic;
  sweep->steps = context_.begin_steps();
  sweep->reply = std::move(reply);
  if (state) {
    sweep->states = {*state};
  } else {
    // In the order of a job's life, so that none slips into a state that was purged before.
    sweep->states = {JobState::kDead, JobState::kDone, JobState::kReserved, JobState::kReady,
                     JobState::kDelayed};
  }
  next_purge(std::move(sweep));
}

void Sweeps::next_purge(std::unique_ptr<TopicSweep> sweep) {
  const std::string& topic = sweep->topic;
  const JobState state = sweep->states.back();
  context_.engine.purge(context_.now, topic, state, kStep,
                        [this, sweep = std::move(sweep), state](const Result<uint64_t>& step) mutable {
                          if (!step.ok()) return context_.refuse(sweep->reply, step.error());
                          sweep->total += *step;
                          if (state == JobState::kReserved)
                            hand_over_.lease_ended(context_.topics.find(sweep->topic));
                          if (*step < kStep) sweep->states.pop_back();
                          if (!sweep->states.empty()) return next_purge(std::move(sweep));
                          context_.answer(sweep->reply, Result{sweep->total});
                        });
}

}  // namespace delayq
