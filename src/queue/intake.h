#pragma once

#include "core/random.h"
#include "queue/hand_over.h"
#include "queue/settings_book.h"
#include "queue/waiters.h"

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

/// Takes in jobs and settings that were somewhere else before, under the same rules and bounds as a push, and
/// keeps them as they were.
class Restoring {
 public:
  Restoring(Context& context, Admission& admission, HandOver& hand_over, SettingsBook& settings)
      : context_(context), admission_(admission), hand_over_(hand_over), settings_(settings) {}

  void restore(std::span<const RestoreItem> items, Reply<std::vector<Result<RestoreReceipt>>> reply);
  void restore_settings(std::string_view name, Settings settings, OnConflict on_conflict,
                        Reply<RestoreOutcome> reply);

 private:
  struct Batch;
  /// Answers whether the engine gets the job; false: it is not worth keeping any more.
  Result<bool> accept(const RestoreItem& item, Batch& batch);
  void settle(Batch& batch, const Result<std::vector<PushAnswer>>& answers);

  Context& context_;
  Admission& admission_;
  HandOver& hand_over_;
  SettingsBook& settings_;
};

}  // namespace delayq
