#pragma once

#include <memory>
#include <string>
#include <vector>

#include "queue/context.h"
#include "queue/places.h"

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

}  // namespace delayq
