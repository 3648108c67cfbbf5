#include "queue/lookup.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/text.h"

namespace delayq {

namespace {

Status check_job(std::string_view op, const JobRef& job) {
  if (const Status status = check_topic(job.topic); !status) return in_verb(op, status.error());
  if (const Status status = check_id(job.id); !status) return in_verb(op, status.error());
  return {};
}

Result<Moment> due_of(const RescheduleItem& item, Moment now) {
  if (item.delay.has_value() == item.at.has_value()) {
    return invalid("delay", "delay and at: give exactly one of them");
  }
  if (const Status status = item.delay ? check_delay(*item.delay) : check_due(now, *item.at); !status) {
    return status.error();
  }
  return item.delay ? saturating_add(now, *item.delay) : std::max(*item.at, now);
}

std::vector<std::string> copy_of(TopicPatterns patterns) { return {patterns.begin(), patterns.end()}; }

void leave_only(TopicPatterns patterns, std::vector<std::string>& topics) {
  std::erase_if(topics, [&](const std::string& topic) { return !covers(patterns, topic); });
}

Error ambiguous(std::string_view op, std::string_view id, size_t topics) {
  return about_field("id", {ErrorCode::kConflict, std::string(op),
                            fmt::format("id {} is in {} topics: say in which", quote(id), topics)});
}

}  // namespace

void Lookup::get(const JobRef& job, Reply<std::optional<FoundJob>> reply) {
  if (const Status status = check_job("get", job); !status) return context_.refuse(reply, status.error());
  context_.engine.get(context_.now, job, std::move(reply));
}

template <class T, class Found>
void Lookup::locate(std::string_view op, std::string_view id, TopicPatterns topics, Reply<T> reply, T none,
                    Found found) {
  if (const Status status = check_id(id); !status) return context_.refuse(reply, in_verb(op, status.error()));
  context_.engine.locate(context_.now, id, Among::kLive,
                         [this, op = std::string{op}, id = std::string{id}, among = copy_of(topics),
                          reply = std::move(reply), none = std::move(none), found = std::move(found),
                          steps = context_.begin_steps()](Result<std::vector<std::string>> located) mutable {
                           if (!located.ok()) return context_.refuse(reply, located.error());
                           leave_only(among, *located);
                           if (located->empty()) return context_.answer(reply, Result<T>{std::move(none)});
                           if (located->size() == 1)
                             return found(JobRef{located->front(), id}, std::move(reply));
                           context_.refuse(reply, ambiguous(op, id, located->size()));
                         });
}

void Lookup::find(std::string_view id, TopicPatterns topics, Reply<std::optional<FoundJob>> reply) {
  locate<std::optional<FoundJob>>("find", id, topics, std::move(reply), std::nullopt,
                                  [this](const JobRef& job, Reply<std::optional<FoundJob>> give) {
                                    context_.engine.get(context_.now, job, std::move(give));
                                  });
}

struct Lookup::Search {
  std::string id;
  std::vector<std::string> topics;  ///< still to be looked at
  std::optional<FoundJob> best{};
  size_t live = 0;
  Reply<std::optional<FoundJob>> reply;
  Steps steps{};

  /// A live job comes before those that are over, and of these the one that was pushed last.
  void offer(std::optional<FoundJob> found) {
    if (!found) return;
    live += is_live(found->job.state) ? 1 : 0;
    const auto rank = [](const FoundJob& each) {
      return std::pair(is_live(each.job.state), each.job.pushed);
    };
    if (!best || rank(*best) < rank(*found)) best = std::move(found);
  }
};

void Lookup::find_kept_too(std::string_view id, TopicPatterns topics, Reply<std::optional<FoundJob>> reply) {
  if (const Status status = check_id(id); !status)
    return context_.refuse(reply, in_verb("find", status.error()));
  auto search = std::make_unique<Search>();
  search->id = id;
  search->reply = std::move(reply);
  search->steps = context_.begin_steps();
  context_.engine.locate(context_.now, id, Among::kAll,
                         [this, among = copy_of(topics),
                          search = std::move(search)](Result<std::vector<std::string>> located) mutable {
                           if (!located.ok()) return context_.refuse(search->reply, located.error());
                           leave_only(among, *located);
                           search->topics = std::move(*located);
                           next_of_search(std::move(search));
                         });
}

void Lookup::next_of_search(std::unique_ptr<Search> search) {
  if (search->live > 1) return context_.refuse(search->reply, ambiguous("find", search->id, search->live));
  if (search->topics.empty())
    return context_.answer(search->reply, Result<std::optional<FoundJob>>{std::move(search->best)});
  const std::string topic = std::move(search->topics.back());
  search->topics.pop_back();
  const std::string id = search->id;
  context_.engine.get(context_.now, {topic, id},
                      [this, search = std::move(search)](Result<std::optional<FoundJob>> found) mutable {
                        if (!found.ok()) return context_.refuse(search->reply, found.error());
                        search->offer(std::move(*found));
                        next_of_search(std::move(search));
                      });
}

void Lookup::cancel(std::span<const JobRef> jobs, Reply<std::vector<Result<CancelOutcome>>> reply) {
  if (const Status size = check_batch("cancel", jobs.size()); !size)
    return context_.refuse(reply, size.error());
  std::vector<Result<CancelOutcome>> results;
  std::vector<JobRef> valid;
  results.reserve(jobs.size());
  valid.reserve(jobs.size());
  Places places;
  TopicRuns runs;
  std::string_view last;
  for (const JobRef& job : jobs) {
    if (const Status status = check_job("cancel", job); !status) {
      results.emplace_back(status.error());
      places.leave_out();
      continue;
    }
    if (runs.empty() || job.topic != last) runs.push_back({context_.topics.find(job.topic), 0});
    last = job.topic;
    ++runs.back().count;
    results.emplace_back(CancelOutcome::kUnknown);
    places.keep();
    valid.push_back(job);
  }
  if (valid.empty()) return context_.answer(reply, Result{std::move(results)});
  context_.engine.cancel(
      context_.now, valid,
      [this, results = std::move(results), places = std::move(places), runs = std::move(runs),
       reply = std::move(reply)](const Result<std::vector<CancelOutcome>>& outcomes) mutable {
        size_t next = 0;
        for (const TopicRun& run : runs) {
          uint64_t cancelled = 0;
          for (uint32_t i = 0; i < run.count; ++i, ++next) {
            Result<CancelOutcome>& result = results[places[next]];
            if (!outcomes.ok()) {
              result = outcomes.error();
              continue;
            }
            result = (*outcomes)[next];
            if (*result == CancelOutcome::kCancelled) ++cancelled;
          }
          context_.topics.count(run.topic.get(), Tally::kCancelled, cancelled);
        }
        context_.answer(reply, Result{std::move(results)});
      });
}

void Lookup::cancel_by_id(std::string_view id, Reply<CancelOutcome> reply) {
  locate<CancelOutcome>("cancel", id, kAllTopics, std::move(reply), CancelOutcome::kUnknown,
                        [this](const JobRef& job, Reply<CancelOutcome> give) {
                          cancel({&job, 1}, [this, give = std::move(give)](
                                                Result<std::vector<Result<CancelOutcome>>> results) mutable {
                            if (!results.ok()) return context_.refuse(give, results.error());
                            context_.answer(give, std::move(results->front()));
                          });
                        });
}

void Lookup::reschedule(std::span<const RescheduleItem> items,
                        Reply<std::vector<Result<RescheduleOutcome>>> reply) {
  if (const Status size = check_batch("reschedule", items.size()); !size)
    return context_.refuse(reply, size.error());
  std::vector<Result<RescheduleOutcome>> results;
  std::vector<RescheduleRequest> requests;
  results.reserve(items.size());
  requests.reserve(items.size());
  Places places;
  for (const RescheduleItem& item : items) {
    const Status job = check_job("reschedule", item.job);
    const Result<Moment> due = due_of(item, context_.now);
    if (!job.ok() || !due.ok()) {
      results.emplace_back(in_verb("reschedule", job.ok() ? due.error() : job.error()));
      places.leave_out();
      continue;
    }
    results.emplace_back(RescheduleOutcome::kUnknown);
    places.keep();
    requests.push_back({item.job, *due});
  }
  if (requests.empty()) return context_.answer(reply, Result{std::move(results)});
  const size_t count = requests.size();
  context_.engine.reschedule(
      context_.now, requests,
      [this, count, results = std::move(results), places = std::move(places),
       reply = std::move(reply)](const Result<std::vector<RescheduleOutcome>>& outcomes) mutable {
        for (size_t i = 0; i < count; ++i) {
          Result<RescheduleOutcome>& result = results[places[i]];
          if (outcomes.ok()) {
            result = (*outcomes)[i];
          } else {
            result = outcomes.error();
          }
        }
        context_.answer(reply, Result{std::move(results)});
      });
}

}  // namespace delayq
