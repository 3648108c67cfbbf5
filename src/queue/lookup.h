#pragma once

#include <memory>
#include <string>
#include <vector>

#include "queue/admission.h"
#include "queue/context.h"
#include "queue/hand_over.h"
#include "queue/settings_book.h"
#include "queue/waiters.h"

namespace delayq {

/// What is done to jobs by their name: look up, cancel, reschedule (rules 3, 4 and 5).
class Lookup {
 public:
  explicit Lookup(Context& context) : context_(context) {}

  void get(const JobRef& job, Reply<std::optional<FoundJob>> reply);
  void find(std::string_view id, TopicPatterns topics, Reply<std::optional<FoundJob>> reply);
  void find_kept_too(std::string_view id, TopicPatterns topics, Reply<std::optional<FoundJob>> reply);
  void cancel(std::span<const JobRef> jobs, Reply<std::vector<Result<CancelOutcome>>> reply);
  void cancel_by_id(std::string_view id, Reply<CancelOutcome> reply);
  void reschedule(std::span<const RescheduleItem> items, Reply<std::vector<Result<RescheduleOutcome>>> reply);

 private:
  /// Calls `found` with the only one of those topics in which the id is live; answers `none` when there is no
  /// such topic.
  template <class T, class Found>
  void locate(std::string_view op, std::string_view id, TopicPatterns topics, Reply<T> reply, T none,
              Found found);

  /// A search for an id through the topics that have it.
  struct Search;
  void next_of_search(std::unique_ptr<Search> search);

  Context& context_;
};

/// Looking around: changes nothing.
class Overview {
 public:
  Overview(Context& context, const Admission& admission, const HandOver& hand_over,
           const SettingsBook& settings)
      : context_(context), admission_(admission), hand_over_(hand_over), settings_(settings) {}

  void list(const ListRequest& request, Reply<JobPage> reply);
  void topics(std::string_view cursor, uint32_t limit, Reply<TopicSummaries> reply);
  void stats(std::string_view topic, Reply<TopicStats> reply);
  void totals(Reply<TotalStats> reply);
  void forecast(const ForecastRequest& request, Reply<Forecast> reply);

 private:
  TopicSummaries with_settings(TopicPage page, std::string_view cursor, uint32_t limit) const;

  Context& context_;
  const Admission& admission_;
  const HandOver& hand_over_;
  const SettingsBook& settings_;
};

/// Verbs over as many jobs as there are: done in bounded steps, between which others get their turn. The
/// answer is how many jobs it was. When a step fails, those before it have happened.
class Sweeps {
 public:
  Sweeps(Context& context, HandOver& hand_over) : context_(context), hand_over_(hand_over) {}

  void cancel_group(std::string_view group, TopicPatterns topics, Reply<GroupCancelAnswer> reply);
  void redrive_all(std::string_view topic, Reply<uint64_t> reply);
  void redrive(std::string_view topic, std::span<const std::string_view> ids, Reply<uint64_t> reply);
  void redrive_by_error(std::string_view topic, std::string_view error, Reply<uint64_t> reply);
  void purge(std::string_view topic, std::optional<JobState> state, Reply<uint64_t> reply);

 private:
  struct GroupSweep;
  struct TopicSweep;
  void next_of_group(std::unique_ptr<GroupSweep> sweep);
  void count_cancelled(const GroupCancelAnswer& step);
  void next_redrive(std::unique_ptr<TopicSweep> sweep);
  void next_search(std::unique_ptr<TopicSweep> sweep);
  void redrive_found(std::unique_ptr<TopicSweep> sweep, const JobPage& page);
  void next_purge(std::unique_ptr<TopicSweep> sweep);

  Context& context_;
  HandOver& hand_over_;
};

}  // namespace delayq
