#pragma once

#include <memory>
#include <string>
#include <vector>

#include "queue/admission.h"
#include "queue/context.h"
#include "queue/hand_over.h"
#include "queue/topics.h"

namespace delayq {

/// Everything that is done to jobs without holding their lease: look them up, list and count them, cancel,
/// reschedule, redrive and purge them, by id, group, topic or state (rules 3, 4 and 5). See Queue for each.
///
/// cancel_group, redrive_all, redrive_by_error and purge may concern any number of jobs. They run in bounded
/// steps, and other verbs may run in between. When a step fails, the steps before it have taken effect.
class Lookup {
 public:
  Lookup(Context& context, const Admission& admission, HandOver& hand_over, const SettingsBook& settings)
      : context_(context), admission_(admission), hand_over_(hand_over), settings_(settings) {}

  // ---- by id
  void get(const JobRef& job, Reply<std::optional<FoundJob>> reply);
  void find(std::string_view id, TopicPatterns topics, Reply<std::optional<FoundJob>> reply);
  void find_kept_too(std::string_view id, TopicPatterns topics, Reply<std::optional<FoundJob>> reply);
  void cancel(std::span<const JobRef> jobs, Reply<std::vector<Result<CancelOutcome>>> reply);
  void cancel_by_id(std::string_view id, Reply<CancelOutcome> reply);
  void reschedule(std::span<const RescheduleItem> items, Reply<std::vector<Result<RescheduleOutcome>>> reply);
  void redrive(std::string_view topic, std::span<const std::string_view> ids, Reply<uint64_t> reply);

  // ---- lists and figures
  void list(const ListRequest& request, Reply<JobPage> reply);
  void topics(std::string_view cursor, uint32_t limit, Reply<TopicSummaries> reply);
  void stats(std::string_view topic, Reply<TopicStats> reply);
  /// Of a job with a callback of its own, or of a topic, when `callback` is empty. See Queue.
  std::string delivery_problem(std::string_view topic, std::string_view callback) const;
  void totals(Reply<TotalStats> reply);
  void forecast(const ForecastRequest& request, Reply<Forecast> reply);

  // ---- whole groups and topics
  void cancel_group(std::string_view group, TopicPatterns topics, Reply<GroupCancelAnswer> reply);
  void redrive_all(std::string_view topic, Reply<uint64_t> reply);
  void redrive_by_error(std::string_view topic, std::string_view error, Reply<uint64_t> reply);
  void purge(std::string_view topic, std::optional<JobState> state, Reply<uint64_t> reply);

 private:
  /// Calls `found` with the topic in which the id is live. Replies `none` when no topic has it, and kConflict
  /// when several have it.
  template <class T, class Found>
  void locate(std::string_view op, std::string_view id, TopicPatterns topics, Reply<T> reply, T none,
              Found found);

  /// find_kept_too(): asks one topic after another.
  struct Search;
  void next_of_search(std::unique_ptr<Search> search);

  TopicSummaries with_settings(TopicPage page, std::string_view cursor, uint32_t limit) const;

  /// The verbs that run in steps.
  struct GroupSweep;
  struct TopicSweep;
  void next_of_group(std::unique_ptr<GroupSweep> sweep);
  void count_cancelled(const GroupCancelAnswer& step, std::string_view group);
  struct CancelNews;
  std::shared_ptr<CancelNews> ask_groups(std::span<const JobRef> jobs);
  /// Without an id: of so many jobs of the group.
  void tell_cancelled(std::string_view topic, std::string_view id, std::string_view group,
                      uint64_t count = 1);
  void next_redrive(std::unique_ptr<TopicSweep> sweep);
  void next_dead_page(std::unique_ptr<TopicSweep> sweep);
  void redrive_found(std::unique_ptr<TopicSweep> sweep, const JobPage& page);
  void next_purge(std::unique_ptr<TopicSweep> sweep);

  Context& context_;
  const Admission& admission_;
  HandOver& hand_over_;
  const SettingsBook& settings_;
};

}  // namespace delayq
