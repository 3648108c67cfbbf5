#pragma once

#include <deque>
#include <string>

#include "queue/context.h"
#include "queue/settings.h"

namespace delayq {

/// Forgets done and dead jobs above what their topics keep when that has become less: a job that ends makes
/// room for itself, but settings that change make nobody end. In the background, in bounded steps, one topic
/// at a time.
class RetentionSweep {
 public:
  explicit RetentionSweep(Context& context) : context_(context) {}

  /// The topic's settings may keep less than it has. REQUIRES: the table knows the topic.
  void look_at(std::string_view topic);
  /// The same for all topics.
  void look_at_all();

 private:
  void next();
  void trim(JobState state);

  Context& context_;
  std::deque<std::string> topics_;  ///< to look at; the first is being looked at
};

}  // namespace delayq
