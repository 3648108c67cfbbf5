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

/// Logs what an operator should know of the Redis that jobs are written to, each thing once. So a wrong URL
/// is seen at the start, and not when the first job is due.
class DeliveryWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using Tell = std::function<void(bool is_bad, std::string_view what)>;

  explicit DeliveryWatch(Tell tell) : tell_(std::move(tell)) {}

  /// Another Redis from now on, and the names of its settings. For the engine's own Redis the state of the
  /// connection is not logged here: the engine's storage does that.
  void begin(net::redis::Mode mode, RedisNames names);

  /// Reports the state of the connection. A short loss without a lasting reason is not logged.
  void look(Clock::time_point now, bool is_connected, std::string_view last_error);
  /// Redis accepts no jobs, for that reason; empty: it accepts them again.
  void wrote(std::string_view why);
  /// Redis refused a command; `text` is its error message.
  void refused(std::string_view command, std::string_view key, std::string_view text);
  /// The answer to HELLO, a command that every user may send.
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
