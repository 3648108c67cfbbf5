#include "queue/lookup.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/crc32c.h"
#include "core/text.h"
#include "queue/context.h"

namespace delayq {

namespace {

/// Of a batch of cancels, the groups of so many are asked for when somebody listens.
constexpr size_t kGroupsAsked = 100;

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
  std::vector<std::string> topics;  ///< not asked yet
  std::optional<FoundJob> best{};
  size_t live = 0;  ///< live jobs found so far
  Reply<std::optional<FoundJob>> reply;
  Steps steps{};

  /// Keeps the better one: a live job is better than a finished one, a later push better than an earlier.
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

/// What is told of jobs that are cancelled. Their groups are asked for before.
struct Lookup::CancelNews {
  struct Each {
    std::string topic, id, group;
    bool is_known = true;  ///< the group
    bool is_cancelled = false;
  };
  std::vector<Each> jobs;
};

std::shared_ptr<Lookup::CancelNews> Lookup::ask_groups(std::span<const JobRef> jobs) {
  auto news = std::make_shared<CancelNews>();
  for (const JobRef& job : jobs) news->jobs.push_back({std::string(job.topic), std::string(job.id), {}});
  for (size_t i = 0; i < std::min(jobs.size(), kGroupsAsked); ++i) {
    news->jobs[i].is_known = false;
    context_.engine.get(context_.now, jobs[i], [this, news, i](const Result<std::optional<FoundJob>>& found) {
      CancelNews::Each& job = news->jobs[i];
      job.is_known = true;
      if (found.ok() && *found) job.group = (*found)->job.group;
      if (job.is_cancelled) tell_cancelled(job.topic, job.id, job.group);
    });
  }
  return news;
}

void Lookup::tell_cancelled(std::string_view topic, std::string_view id, std::string_view group,
                            uint64_t count) {
  if (!context_.news.is_on()) return;
  context_.news.note({.kind = NewsKind::kCancelled,
                      .at = context_.now,
                      .topic = topic,
                      .id = id,
                      .group = group,
                      .count = count});
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
  const std::shared_ptr<CancelNews> news = context_.news.is_on() ? ask_groups(valid) : nullptr;
  context_.engine.cancel(
      context_.now, valid,
      [this, news, results = std::move(results), places = std::move(places), runs = std::move(runs),
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
            if (*result != CancelOutcome::kCancelled) continue;
            ++cancelled;
            if (news == nullptr) continue;
            CancelNews::Each& job = news->jobs[next];
            job.is_cancelled = true;
            if (job.is_known) tell_cancelled(job.topic, job.id, job.group);
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

namespace {

/// The prefix of the cursors of this list: its state and topic, and whether it has a window, since an engine
/// may walk in another order then.
std::string listing_of(const ListRequest& request) {
  return fmt::format("{}{:08x}{}.", static_cast<int>(request.state),
                     crc32c(0, request.topic.data(), request.topic.size()), request.due.is_all() ? "" : "d");
}

}  // namespace

void Lookup::list(const ListRequest& request, Reply<JobPage> reply) {
  Status status = check_topic(request.topic);
  if (status.ok()) status = check_count("limit", request.limit, Limits::kPageJobs);
  if (status.ok() && request.due.before <= request.due.from)
    status = invalid("due_before", "due_before must be after due_after");
  // The engine's cursor is meaningless in a list of another topic or state, so the prefix is checked.
  const std::string listing = listing_of(request);
  ListRequest wanted = request;
  if (status.ok() && !request.cursor.empty()) {
    if (request.cursor.starts_with(listing)) {
      wanted.cursor.remove_prefix(listing.size());
    } else {
      status = invalid("cursor",
                       "cursor: not one that a list of this topic and state, with or without due times as "
                       "here, has answered");
    }
  }
  if (!status) return context_.refuse(reply, in_verb("list", status.error()));
  context_.engine.list(context_.now, wanted,
                       [this, listing, reply = std::move(reply)](Result<JobPage> page) mutable {
                         if (page.ok() && !page->cursor.empty()) page->cursor.insert(0, listing);
                         context_.answer(reply, std::move(page));
                       });
}

void Lookup::topics(std::string_view cursor, uint32_t limit, Reply<TopicSummaries> reply) {
  if (const Status status = check_count("limit", limit, Limits::kPageJobs); !status) {
    return context_.refuse(reply, in_verb("topics", status.error()));
  }
  context_.engine.topics(context_.now, cursor, limit,
                         [this, cursor = std::string{cursor}, limit, reply = std::move(reply),
                          steps = context_.begin_steps()](Result<TopicPage> page) mutable {
                           if (!page.ok()) return context_.refuse(reply, page.error());
                           context_.answer(reply, Result{with_settings(std::move(*page), cursor, limit)});
                         });
}

TopicSummaries Lookup::with_settings(TopicPage page, std::string_view cursor, uint32_t limit) const {
  // Merges two sorted lists: the engine's topics, which have jobs, and the topics that have settings.
  const std::vector<std::string> names = settings_.names_after(cursor, limit + 1);
  TopicSummaries merged;
  auto row = page.topics.begin();
  auto name = names.begin();
  while (merged.topics.size() <= limit && (row != page.topics.end() || name != names.end())) {
    if (name == names.end() && row == page.topics.end()) break;
    const bool from_engine = row != page.topics.end() && (name == names.end() || row->topic <= *name);
    // After its cursor the engine may have more topics that sort before this name: those are on the next
    // page.
    if (!from_engine && row == page.topics.end() && !page.cursor.empty() && *name > page.cursor) break;
    if (from_engine && name != names.end() && row->topic == *name) ++name;
    TopicSummary& summary = merged.topics.emplace_back();
    if (from_engine) {
      summary.topic = std::move(row->topic);
      summary.counts = row->counts;
      ++row;
    } else {
      summary.topic = *name++;
    }
    summary.paused = settings_.effective(summary.topic).paused;
    if (const TopicPtr found = context_.topics.find(summary.topic)) {
      summary.tallies = found->tallies;
      summary.lateness = found->lateness;
      summary.waiters = found->idle.size();
    }
  }
  if (merged.topics.size() > limit) {
    merged.topics.pop_back();
    merged.cursor = merged.topics.back().topic;
  } else {
    merged.cursor = page.cursor;
  }
  return merged;
}

void Lookup::stats(std::string_view topic, Reply<TopicStats> reply) {
  if (const Status status = check_topic(topic); !status) {
    return context_.refuse(reply, in_verb("stats", status.error()));
  }
  context_.engine.counts(context_.now, topic,
                         [this, name = std::string{topic}, reply = std::move(reply),
                          steps = context_.begin_steps()](const Result<TopicCounts>& counts) mutable {
                           if (!counts.ok()) return context_.refuse(reply, counts.error());
                           TopicStats stats;
                           stats.counts = *counts;
                           stats.settings = settings_.effective(name);
                           stats.delivery_problem = delivery_problem(name, {});
                           if (const TopicPtr found = context_.topics.find(name)) {
                             stats.tallies = found->tallies;
                             stats.lateness = found->lateness;
                             stats.waiters = found->idle.size();
                           }
                           context_.answer(reply, Result{std::move(stats)});
                         });
}

std::string Lookup::delivery_problem(std::string_view topic, std::string_view callback) const {
  if (!callback.empty()) return context_.problem_of_callback(callback);
  if (const Status status = settings_.check_delivery(context_, topic); !status) return status.error().detail;
  const EffectiveSettings& settings = settings_.effective(topic);
  return settings.delivery == Delivery::kWebhook ? context_.problem_of_callback(settings.callback)
                                                 : std::string();
}

void Lookup::totals(Reply<TotalStats> reply) {
  context_.engine.counts(context_.now, {},
                         [this, reply = std::move(reply),
                          steps = context_.begin_steps()](const Result<TopicCounts>& counts) mutable {
                           if (!counts.ok()) return context_.refuse(reply, counts.error());
                           TotalStats stats;
                           stats.counts = *counts;
                           stats.tallies = context_.topics.totals();
                           stats.lateness = context_.topics.total_lateness();
                           stats.usage = context_.engine.usage();
                           stats.commits = context_.engine.commits();
                           stats.waiters = hand_over_.waiters();
                           stats.unanswered_bytes = admission_.unanswered_bytes();
                           context_.answer(reply, Result{stats});
                         });
}

void Lookup::forecast(const ForecastRequest& request, Reply<Forecast> reply) {
  Status status = request.topic.empty() ? Status{} : check_topic(request.topic);
  if (status.ok()) status = check_count("bins", request.bins, Limits::kForecastBins);
  if (status.ok() && request.to <= request.from) {
    status = invalid("to", "from and to: to must be after from");
  }
  if (!status) return context_.refuse(reply, in_verb("forecast", status.error()));
  context_.engine.forecast(context_.now, request, std::move(reply));
}

namespace {

/// Jobs per step: enough to be worth a commit, few enough not to delay other clients.
constexpr uint32_t kStep = 1'000;

}  // namespace

struct Lookup::GroupSweep {
  std::string group;
  std::vector<std::string> topics;
  std::string cursor;
  GroupCancelAnswer total;
  Reply<GroupCancelAnswer> reply;
  Steps steps;
};

struct Lookup::TopicSweep {
  std::string topic;
  std::string error;             ///< redrive_by_error: the text to search for
  std::string cursor;            ///< redrive_by_error: of the next page of dead jobs
  std::vector<JobState> states;  ///< purge: the states not purged yet; the last one is next
  uint64_t total = 0;
  Reply<uint64_t> reply;
  Steps steps;
};

// ---- groups

void Lookup::cancel_group(std::string_view group, TopicPatterns topics, Reply<GroupCancelAnswer> reply) {
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

void Lookup::next_of_group(std::unique_ptr<GroupSweep> sweep) {
  const std::string cursor = std::move(sweep->cursor);
  const GroupCancelRequest request{sweep->group, sweep->topics, kStep, cursor};
  context_.engine.cancel_group(
      context_.now, request, [this, sweep = std::move(sweep)](const Result<GroupCancelAnswer>& step) mutable {
        if (!step.ok()) return context_.refuse(sweep->reply, step.error());
        sweep->total.cancelled += step->cancelled;
        sweep->total.reserved += step->reserved;
        count_cancelled(*step, sweep->group);
        if (!step->cursor.empty()) {
          sweep->cursor = step->cursor;
          return next_of_group(std::move(sweep));
        }
        context_.answer(sweep->reply, Result{sweep->total});
      });
}

void Lookup::count_cancelled(const GroupCancelAnswer& step, std::string_view group) {
  for (const auto& [name, cancelled] : step.cancelled_by_topic) {
    context_.topics.count(context_.topics.find(name).get(), Tally::kCancelled, cancelled);
    tell_cancelled(name, {}, group, cancelled);
  }
}

// ---- dead letters

void Lookup::redrive(std::string_view topic, std::span<const std::string_view> ids, Reply<uint64_t> reply) {
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

void Lookup::redrive_all(std::string_view topic, Reply<uint64_t> reply) {
  if (const Status status = check_topic(topic); !status) {
    return context_.refuse(reply, in_verb("redrive", status.error()));
  }
  auto sweep = std::make_unique<TopicSweep>();
  sweep->topic = topic;
  sweep->steps = context_.begin_steps();
  sweep->reply = std::move(reply);
  next_redrive(std::move(sweep));
}

void Lookup::next_redrive(std::unique_ptr<TopicSweep> sweep) {
  const std::string& topic = sweep->topic;
  context_.engine.redrive_oldest(context_.now, topic, kStep,
                                 [this, sweep = std::move(sweep)](const Result<uint64_t>& step) mutable {
                                   if (!step.ok()) return context_.refuse(sweep->reply, step.error());
                                   sweep->total += *step;
                                   if (*step == kStep) return next_redrive(std::move(sweep));
                                   context_.answer(sweep->reply, Result{sweep->total});
                                 });
}

void Lookup::redrive_by_error(std::string_view topic, std::string_view error, Reply<uint64_t> reply) {
  Status status = check_topic(topic);
  if (status.ok()) status = check_reason(error);
  if (!status) return context_.refuse(reply, in_verb("redrive", status.error()));
  auto sweep = std::make_unique<TopicSweep>();
  sweep->topic = topic;
  sweep->steps = context_.begin_steps();
  sweep->error = error;
  sweep->reply = std::move(reply);
  next_dead_page(std::move(sweep));
}

void Lookup::next_dead_page(std::unique_ptr<TopicSweep> sweep) {
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

void Lookup::redrive_found(std::unique_ptr<TopicSweep> sweep, const JobPage& page) {
  std::vector<std::string_view> ids;
  ids.reserve(page.jobs.size());
  for (const Job& job : page.jobs) ids.push_back(job.id);
  sweep->cursor = page.cursor;
  const std::string& topic = sweep->topic;
  context_.engine.redrive(context_.now, topic, ids,
                          [this, sweep = std::move(sweep)](const Result<uint64_t>& step) mutable {
                            if (!step.ok()) return context_.refuse(sweep->reply, step.error());
                            sweep->total += *step;
                            if (!sweep->cursor.empty()) return next_dead_page(std::move(sweep));
                            context_.answer(sweep->reply, Result{sweep->total});
                          });
}

// ---- purge

void Lookup::purge(std::string_view topic, std::optional<JobState> state, Reply<uint64_t> reply) {
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
    // Purged from the back, in the order of a job's life: no job can move forward into a state that was
    // already purged.
    sweep->states = {JobState::kDead, JobState::kDone, JobState::kReserved, JobState::kReady,
                     JobState::kDelayed};
  }
  next_purge(std::move(sweep));
}

void Lookup::next_purge(std::unique_ptr<TopicSweep> sweep) {
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
