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

/// How a script's answer, from its third place on, is shared out among verbs whose items it was given
/// together.
enum class Share : uint8_t {
  kOneEach,  ///< it says one thing of each item
  /// It says two; when it says them only of the first items, the others get nothing. An odd one at the end is
  /// for every verb that did not get all it asked for.
  kTwoEach,
  kExceptions,  ///< it says four of some items, the first being the item's place (push.lua)
};

/// What must be the same of items that go into one call.
struct Terms {
  const net::redis::Script& script;
  Share share = Share::kOneEach;
  uint32_t shard = 0;
  std::string_view topic;
  Moment now{};
  std::span<const int64_t> numbers{};  ///< the first of the script's own arguments
  bool is_count_enough = false;        ///< items have no arguments: the script is told how many there are
};

/// A call that grows until it is sent. Verbs of one turn of the loop often ask the same of the same topic,
/// each for few jobs; a script that is run once for many of them costs Redis a fraction.
class JointCall {
 public:
  /// Bounds are those of one verb's calls (bundles.h), and this of items that are only counted.
  static constexpr uint32_t kMostCounted = 1'000;

  /// `arguments` are those that every script about a topic is given first.
  JointCall(const Terms& terms, Arguments arguments);

  const net::redis::Script& script() const { return *script_; }
  uint32_t shard() const { return shard_; }
  const std::string& topic() const { return topic_; }
  bool is_about(uint32_t shard, std::string_view topic) const { return shard_ == shard && topic_ == topic; }

  /// Whether so many more items may be added under these terms.
  bool takes(const Terms& terms, uint32_t items) const;
  /// Adds a verb's items. It gets its share of the answer; its arguments are for the caller to add.
  Arguments& add(uint32_t items, net::redis::Answer answer);
  /// The whole call's arguments. To be called once, when all are added.
  Arguments& finish();
  const Arguments& arguments() const { return arguments_; }
  /// It has been sent: its arguments are not kept until the answer comes, unless they may be needed again.
  /// Those of a push are the bodies.
  void note_sent() {
    if (!may_be_parted()) arguments_ = {};
  }
  /// A script that is given jobs of many bytes does the first of them only. Keeps what it says of these, and
  /// leaves their arguments out: the call is to be made once more. False: this is the answer to all that was
  /// asked.
  [[nodiscard]] bool keep_part(resp::Value& value);
  /// Shares the answer out. To be called once, after which nothing is left of this.
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
  uint32_t items_ = 0;             ///< not yet answered
  std::vector<resp::Value> kept_;  ///< what was said of those that are answered
  std::vector<Part> parts_;
};

}  // namespace delayq::redis
