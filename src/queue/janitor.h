#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "queue/context.h"
#include "queue/settings.h"
#include "queue/settings_book.h"

namespace delayq {

/// Forgets topics that are empty, unused for a while, without settings and without consumers, so that topics
/// which come and go cost nothing in the end. A hand goes round the table and looks at a few topics every few
/// seconds.
class Janitor {
 public:
  Janitor(Context& context, SettingsBook& settings) : context_(context), settings_(settings) {}

  /// Answers when it wants to be called next.
  Moment tick();
  /// See Queue::forget.
  void forget(std::string_view topic, Reply<void> reply);

 private:
  bool may_forget(const TopicPtr& topic) const;
  void ask_and_forget(const TopicPtr& topic);
  void forget_settings(const std::string& topic, Reply<void> reply);

  Context& context_;
  SettingsBook& settings_;
  size_t hand_ = 0;
  Moment next_round_{};
};

/// Applies what topics keep of their done and dead jobs to those that are kept already, when it has become
/// less: a job that ends makes room for itself and is given its time, but settings that change make nobody
/// end. In the background, in bounded steps, one topic at a time.
///
/// Servers that share their jobs all do this when they hear of other settings: whichever was asked for the
/// change may be gone before it has come to the end. The work is done by the first, and the others only look.
/// For the same reason it is done at every start.
class RetentionSweep {
 public:
  explicit RetentionSweep(Context& context) : context_(context) {}

  /// The topic's settings may keep less than it has. REQUIRES: the table knows the topic.
  void look_at(std::string_view topic);
  /// The same for all topics.
  void look_at_all();

 private:
  void next();
  void trim(JobState state, std::string_view cursor);

  Context& context_;
  std::deque<std::string> topics_;  ///< to look at; the first is being looked at
};

}  // namespace delayq
