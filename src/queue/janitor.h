#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "queue/context.h"
#include "queue/settings.h"
#include "queue/topics.h"

namespace delayq {

/// Forgets topics that are empty, unused for a while, without settings and without consumers, so that
/// short-lived topics do not use memory forever. Every few seconds it checks some topics, round-robin.
class Janitor {
 public:
  Janitor(Context& context, SettingsBook& settings) : context_(context), settings_(settings) {}

  /// Returns when to call it next.
  Moment tick();
  /// See Queue::forget.
  void forget(std::string_view topic, Reply<bool> reply);

 private:
  bool may_forget(const TopicPtr& topic) const;
  void ask_and_forget(const TopicPtr& topic);
  void forget_settings(const std::string& topic, Reply<bool> reply);

  Context& context_;
  SettingsBook& settings_;
  size_t hand_ = 0;  ///< the next topic to check
  Moment next_round_{};
};

/// Applies a reduced retention (keep_done, keep_dead) to the done and dead jobs that a topic already keeps. A
/// job that ends gets the retention of that moment and pushes out older ones; but a change of settings ends
/// no job, so this sweep is needed. It runs in the background, in bounded steps, one topic at a time.
///
/// When servers share their jobs, each of them sweeps when settings change, because the server that made the
/// change may stop before its sweep is finished. The first one removes the jobs, the others find nothing to
/// do. For the same reason every start sweeps.
class RetentionSweep {
 public:
  explicit RetentionSweep(Context& context) : context_(context) {}

  /// The topic may have more jobs than its settings keep. REQUIRES: KnownTopics has the topic.
  void look_at(std::string_view topic);
  /// The same for all topics.
  void look_at_all();

 private:
  void next();
  void trim(JobState state, std::string_view cursor);

  Context& context_;
  std::deque<std::string> topics_;  ///< to sweep; the first one is being swept
};

}  // namespace delayq
