#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <absl/functional/any_invocable.h>

#include "core/result.h"

namespace delayq::redis_delivery {

/// A Redis, as far as jobs are written to it. For one thread. No call waits, and no answer comes from inside
/// a call.
class Target {
 public:
  /// What Redis says, as text; or an error:
  ///   kUnavailable  it is away, and the command may or may not have been carried out
  ///   kOverloaded   it takes nothing more now; nothing was done
  ///   any other     it refused this command, in its own words
  using Answer = absl::AnyInvocable<void(Result<std::string>)>;

  virtual ~Target() = default;

  /// Sends a command; those with the same key are carried out in the order given. The words are copied.
  virtual void call(std::string_view key, std::span<const std::string_view> words, Answer answer) = 0;
  /// Hands out answers that have come. Answers whether there were any.
  virtual bool poll() = 0;
  virtual bool is_connected() const = 0;
};

}  // namespace delayq::redis_delivery
