#pragma once

#include "queue/context.h"

namespace delayq {

/// Forgets topics that are empty, unused for a while, without settings and without consumers, so that topics
/// which come and go cost nothing in the end. A hand goes round the table and looks at a few topics every few
/// seconds.
class Janitor {
 public:
  explicit Janitor(Context& context) : context_(context) {}

  /// Answers when it wants to be called next.
  Moment tick();

 private:
  bool may_forget(const TopicPtr& topic) const;
  void ask_and_forget(const TopicPtr& topic);

  Context& context_;
  size_t hand_ = 0;
  Moment next_round_{};
};

}  // namespace delayq
