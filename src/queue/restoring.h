#pragma once

#include "queue/hand_over.h"
#include "queue/places.h"
#include "queue/settings_book.h"

namespace delayq {

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
