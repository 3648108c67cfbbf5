#pragma once

#include "core/time.h"

namespace delayq::redis {

/// What this server's own news are good for. A call's answer says all that its news do, so they are not
/// listened to; but when the answer is lost, the call may have done its work all the same, and then they are
/// all that is heard of it. They may have come before the loss was known, so everything is looked at once
/// more; and the work may be done later, by a Redis that stood still, so they are listened to for a while.
class Doubt {
 public:
  static constexpr Millis kLookPeriod{1'000};  ///< no look sooner than this after another
  static constexpr Millis kListen{10'000};     ///< after the look

  /// A call was not answered, or Redis could not do it.
  void note_lost() { is_lost_ = is_listening_ = true; }
  /// To be called by each tick. Answers whether everything is to be looked at now.
  bool wants_look(Moment now, bool is_connected);
  /// Whether this server's own news may be news to it.
  bool is_listening() const { return is_listening_; }

 private:
  bool is_lost_ = false;  ///< since the last look
  bool is_listening_ = false;
  Moment looked_ = Moment::min();
};

}  // namespace delayq::redis
