#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "app/storage.h"
#include "net/redis/options.h"
#include "resp/value.h"

namespace delayq {

/// What an operator should know of the Redis that jobs are written to, as lines for the log, each of them
/// once: a wrong URL is seen at the start, and not when the first job is due.
class DeliveryWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using Tell = std::function<void(bool is_bad, std::string_view what)>;

  explicit DeliveryWatch(Tell tell) : tell_(std::move(tell)) {}

  /// Another Redis from now on, and how it was named. With the names of the engine's own settings it is the
  /// engine's: how the connection is, that tells already.
  void begin(net::redis::Mode mode, RedisNames names);

  /// How the connection is. One that is away for a moment only, and for no reason that lasts, is not told of.
  void look(Clock::time_point now, bool is_connected, std::string_view last_error);
  /// Redis takes no jobs, for that reason; empty: it does again.
  void wrote(std::string_view why);
  /// A command was refused by Redis, in its words.
  void refused(std::string_view command, std::string_view key, std::string_view text);
  /// The answer to HELLO, which every user may ask.
  void greeted(const resp::Value& hello);

 private:
  void say(std::string_view why);
  void say_if_over();

  Tell tell_;
  net::redis::Mode mode_ = net::redis::Mode::kStandalone;
  RedisNames names_;
  std::optional<Clock::time_point> away_since_;
  bool is_cut_off_ = false;     ///< told by look()
  bool takes_nothing_ = false;  ///< told by wrote()
  std::set<std::string> told_;  ///< refusals
};

}  // namespace delayq
