#pragma once

#include <cstddef>
#include <functional>

#include <absl/functional/any_invocable.h>

#include "delivery/webhook/call.h"

namespace delayq::webhook {

/// Makes HTTP calls.
///
/// A call is given with call(), leaves with the next poll(), and is answered from a later poll(), exactly
/// once, never from inside call(). So one lock and one wake-up carry a whole turn's calls to the thread that
/// makes them, and one carries back all that came of them meanwhile.
///
/// Answers come in any order. A call that is not answered when the caller is destroyed never will be; whoever
/// is at the other end may have got it or not.
///
/// Threads. All methods are called from one thread. Only the function given to set_wakeup() is called from
/// another.
class Caller {
 public:
  using Done = absl::AnyInvocable<void(CallResult)>;

  virtual ~Caller() = default;

  /// Makes this call, with no regard to other calls to the same host: how many a host may have at once is
  /// decided by whoever asks. Without room it is answered with CallError::kNoRoom.
  virtual void call(Call call, Done done) = 0;

  /// Sends off the calls since the last poll() and runs the `done` of calls that ended; these may make calls,
  /// which leave at once, and never poll(). Answers whether any call ended.
  virtual bool poll() = 0;

  /// How many more calls may be given now.
  virtual size_t room() const = 0;

  /// `wakeup` is called from the caller's thread whenever there is something new for poll(). Set before the
  /// first call.
  virtual void set_wakeup(std::function<void()> wakeup) = 0;
};

}  // namespace delayq::webhook
