#pragma once

#include "queue/context.h"
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

}  // namespace delayq
