#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/functional/any_invocable.h>

#include "engine/engine.h"
#include "engine/redis/arguments.h"
#include "net/redis/client.h"

namespace delayq::redis {

/// Combines the replies to all calls of one verb. The verb's reply is called when the last call has its
/// reply; if a call failed, its error is the reply of the verb.
///
///   auto gather = Gather<std::vector<bool>>::make(std::vector<bool>(items), std::move(reply));
///   for (...) client.run(script, keys, arguments, gather->expect([](resp::Value& value, auto& all) {...}));
///   gather->close(answers_);
template <class T>
class Gather : public std::enable_shared_from_this<Gather<T>> {
 public:
  /// Adds the reply of one call to the reply of the verb. A returned error becomes the error of the verb.
  using Read = absl::AnyInvocable<Status(resp::Value& value, T& all)>;
  /// Functions that the engine's next poll() calls.
  using Later = std::vector<absl::AnyInvocable<void()>>;

  static std::shared_ptr<Gather> make(T all, Reply<T> reply) {
    return std::shared_ptr<Gather>(new Gather(std::move(all), std::move(reply)));
  }

  /// Returns the reply handler for one more call.
  net::redis::Answer expect(Read read) {
    ++open_;
    return [self = this->shared_from_this(), read = std::move(read)](Result<resp::Value> value) mutable {
      self->take(std::move(value), read);
    };
  }

  /// No more calls will be made. If there was none, the reply is added to `later`.
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

/// How the reply of a script, from its third place on, is divided among the verbs whose
/// items were in the call.
enum class Share : uint8_t {
  kOneEach,  ///< one value for each item
  /// Two values for each item. If they cover only the first items, the other items get nothing. An extra
  /// value at the end goes to every verb that did not get all its items.
  kTwoEach,
  kExceptions,  ///< four values for some items; the first is the position of the item (push.lua)
};

/// The properties that all items of one call must share.
struct Terms {
  const net::redis::Script& script;
  Share share = Share::kOneEach;
  uint32_t shard = 0;
  std::string_view topic;
  Moment now{};
  std::span<const int64_t> numbers{};  ///< the first arguments of the script itself
  bool is_count_enough = false;        ///< items have no arguments: only their number is sent
};

/// A call to which verbs add items until it is sent. Verbs of one turn of the loop often do the same in the
/// same topic, each for few jobs. One call for many of them costs Redis a fraction.
class JointCall {
 public:
  /// The bounds are those of bundles (arguments.h), and this one for items that are only counted.
  static constexpr uint32_t kMostCounted = 1'000;

  /// `arguments` are the ones that every script about a topic gets first.
  JointCall(const Terms& terms, Arguments arguments);

  const net::redis::Script& script() const { return *script_; }
  uint32_t shard() const { return shard_; }
  const std::string& topic() const { return topic_; }
  bool is_about(uint32_t shard, std::string_view topic) const { return shard_ == shard && topic_ == topic; }

  /// Whether this many more items with these terms can be added.
  bool takes(const Terms& terms, uint32_t items) const;
  /// Adds the items of a verb, which gets its part of the reply. The caller adds the arguments of the items.
  Arguments& add(uint32_t items, net::redis::Answer answer);
  /// Returns the arguments of the whole call. Call it once, after all items are added.
  Arguments& finish();
  const Arguments& arguments() const { return arguments_; }
  /// The call has been sent. Frees its arguments (for a push these include the bodies), unless they
  /// may be needed again.
  void note_sent() {
    if (!may_be_parted()) arguments_ = {};
  }
  /// A script that gets many bytes of jobs processes only the first of them. Keeps its results for these
  /// and removes their arguments, so that the call can be sent again for the others. Returns false if the
  /// reply covers all items.
  [[nodiscard]] bool keep_part(resp::Value& value);
  /// Divides the reply among the verbs. Call it once; the object is empty afterwards.
  void answer(Result<resp::Value> value);

 private:
  struct Part {
    uint32_t items;
    net::redis::Answer answer;
  };

  bool may_be_parted() const { return share_ != Share::kExceptions && !is_count_enough_; }
  size_t said_of_each() const { return share_ == Share::kTwoEach ? 2 : 1; }
  std::vector<resp::Value> shares_of(resp::Value& whole) const;
  void share_in_turn(resp::Value& whole, size_t for_each, std::vector<resp::Value>& shares) const;
  void share_exceptions(resp::Value& whole, std::vector<resp::Value>& shares) const;

  const net::redis::Script* script_;
  Share share_;
  uint32_t shard_;
  std::string topic_;
  Moment now_;
  std::vector<int64_t> numbers_;
  bool is_count_enough_;
  Arguments arguments_;
  size_t first_of_items_;          ///< the place of their arguments
  uint32_t items_ = 0;             ///< items without a result
  std::vector<resp::Value> kept_;  ///< results of the items already processed
  std::vector<Part> parts_;
};

}  // namespace delayq::redis
