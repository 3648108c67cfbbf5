#pragma once

#include <cstddef>
#include <functional>

#include <absl/functional/any_invocable.h>

#include "delivery/webhook/call.h"

namespace delayq::webhook {

/// Makes HTTP calls.
///
/// A call is given with call(), leaves with the next poll(), and is answered from the poll() after the hear()
/// that took it over, exactly once, never from inside call(). So one lock and one wake-up carry a whole
/// turn's calls to the thread that makes them, and one carries back all that came of them meanwhile.
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

  /// Takes over what has ended until now. Apart from poll(), so that whoever reads the clock in between has a
  /// moment at which all those answers were there: "in two seconds" counts from it.
  virtual void hear() = 0;

  /// Runs the `done` of the calls that were heard to have ended, which may make calls and never poll(), and
  /// sends off the calls since the last poll(). Answers whether any call ended.
  virtual bool poll() = 0;

  /// How many more calls may be given now.
  virtual size_t room() const = 0;

  /// `wakeup` is called from the caller's thread whenever there is something new to hear(). Set before the
  /// first call.
  virtual void set_wakeup(std::function<void()> wakeup) = 0;
};

}  // namespace delayq::webhook
