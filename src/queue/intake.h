#pragma once

#include "core/random.h"
#include "queue/hand_over.h"
#include "queue/places.h"

namespace delayq {

/// Makes the topic the last of `runs`, unless it is: an existing one, or a new one when there may be more.
Status open_topic(Context& context, const Admission& admission, std::string_view name, TopicRuns& runs);

/// Takes jobs in (rules 3, 12 and 14): checks each, fills in what was left unsaid, and gives the good ones of
/// a batch to the engine in one call.
class Intake {
 public:
  Intake(Context& context, Admission& admission, HandOver& hand_over, Random random)
      : context_(context), admission_(admission), hand_over_(hand_over), ids_(random) {}

  void push(std::span<const PushRequest> requests, Reply<PushReport> reply);
  /// What a push would be told, without one.
  void ready(Reply<void> reply);

 private:
  struct Batch;
  Status accept(const PushRequest& request, Batch& batch);
  std::string_view choose_id(const PushRequest& request, Arena& storage);
  void settle(Batch& batch, Result<std::vector<PushAnswer>> answers);

  Context& context_;
  Admission& admission_;
  HandOver& hand_over_;
  UuidGenerator ids_;
};

}  // namespace delayq
