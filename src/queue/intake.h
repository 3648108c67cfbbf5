#pragma once

#include "core/random.h"
#include "queue/context.h"
#include "queue/hand_over.h"
#include "queue/topics.h"

namespace delayq {

/// Accepts jobs (rules 3, 12 and 14): checks each job of a batch, fills in the defaults, and passes the valid
/// jobs to the engine in one call.
class Intake {
 public:
  Intake(Context& context, Admission& admission, HandOver& hand_over, SettingsBook& settings, Random random)
      : context_(context), admission_(admission), hand_over_(hand_over), settings_(settings), ids_(random) {}

  void push(std::span<const PushRequest> requests, Reply<PushReport> reply);
  /// Replies as a small push would, without pushing.
  void ready(Reply<void> reply);

  /// Jobs and settings that were stored elsewhere before: see Queue.
  void restore(std::span<const RestoreItem> items, Reply<std::vector<Result<RestoreReceipt>>> reply);
  void restore_settings(std::string_view name, Settings settings, OnConflict on_conflict,
                        Reply<RestoreOutcome> reply);

 private:
  struct PushBatch;
  struct RestoreBatch;
  /// Adds the job to the batch, or returns why it is refused.
  Status accept(const PushRequest& request, PushBatch& batch);
  /// The same. Returns false when the job is valid but is not stored: its retention is over, or it was
  /// cancelled while it was running.
  Result<bool> accept(const RestoreItem& item, RestoreBatch& batch);
  /// Makes the topic the last one of `runs`. A new topic is created if the limit of topics allows it.
  Status open_topic(std::string_view name, TopicRuns& runs);
  std::string_view choose_id(const PushRequest& request, Arena& storage);
  void tell(std::string_view topic, std::string_view id, std::string_view group, const PushAnswer& answer);
  void settle(PushBatch& batch, Result<std::vector<PushAnswer>> answers);
  void settle(RestoreBatch& batch, const Result<std::vector<PushAnswer>>& answers);

  Context& context_;
  Admission& admission_;
  HandOver& hand_over_;
  SettingsBook& settings_;
  UuidGenerator ids_;
};

}  // namespace delayq
