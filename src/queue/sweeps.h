#pragma once

#include <memory>
#include <string>
#include <vector>

#include "queue/hand_over.h"

namespace delayq {

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
