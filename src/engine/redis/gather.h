#pragma once

#include <memory>
#include <optional>
#include <utility>

#include <absl/functional/any_invocable.h>

#include "engine/engine.h"
#include "net/redis/client.h"

namespace delayq::redis {

/// The answers to the calls that one verb is made of, put together to one. The verb's answer is given when
/// the last call was answered; an error of one of them is the answer of all.
///
///   auto gather = Gather<std::vector<bool>>::make(std::vector<bool>(items), std::move(reply));
///   for (...) client.run(script, keys, arguments, gather->expect([](resp::Value& value, std::vector<bool>&
///   all) { ... })); gather->close(answers_);
template <class T>
class Gather : public std::enable_shared_from_this<Gather<T>> {
 public:
  /// Reads the answer of one call into that of the verb. What it answers is the verb's error, if there is
  /// one.
  using Read = absl::AnyInvocable<Status(resp::Value& value, T& all)>;
  /// What is called by the engine's next poll().
  using Later = std::vector<absl::AnyInvocable<void()>>;

  static std::shared_ptr<Gather> make(T all, Reply<T> reply) {
    return std::shared_ptr<Gather>(new Gather(std::move(all), std::move(reply)));
  }

  /// One more call, to be given what this answers.
  net::redis::Answer expect(Read read) {
    ++open_;
    return [self = this->shared_from_this(), read = std::move(read)](Result<resp::Value> value) mutable {
      self->take(std::move(value), read);
    };
  }

  /// No more calls will be made. Without any, the answer is left to `later`.
  void close(Later& later) {
    is_closed_ = true;
    if (open_ > 0) return;
    later.push_back([self = this->shared_from_this()] { self->give(); });
  }

 private:
  Gather(T all, Reply<T> reply) : all_(std::move(all)), reply_(std::move(reply)) {}

  void take(Result<resp::Value> value, Read& read) {
    Status status = value.ok() ? read(*value, all_) : Status(value.error());
    if (!status.ok() && !error_) error_ = status.error();
    if (--open_ == 0 && is_closed_) give();
  }

  void give() {
    if (error_) {
      reply_(std::move(*error_));
    } else {
      reply_(std::move(all_));
    }
  }

  T all_;
  Reply<T> reply_;
  size_t open_ = 0;
  bool is_closed_ = false;
  std::optional<Error> error_;
};

}  // namespace delayq::redis
