#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "bench/load/loopback.h"
#include "resp/value.h"

namespace delayq::bench {

/// One blocking connection to a server that speaks RESP, for single questions.
class Control {
 public:
  /// A question that is not answered within `limit` is an error.
  static Result<Control> open(const Address& address, std::chrono::seconds limit = std::chrono::seconds(5));

  Result<resp::Value> ask(std::initializer_list<std::string_view> words);

  /// A number of Redis's INFO.
  Result<uint64_t> info(std::string_view section, std::string_view name);

 private:
  explicit Control(Descriptor socket) : socket_(std::move(socket)) {}

  Descriptor socket_;
};

/// Asks until the answer is neither an error nor nothing at all: a server that starts may refuse connections,
/// or say that it is loading. Answers how long that took.
Result<double> seconds_until_answer(const Address& address, std::initializer_list<std::string_view> words,
                                    Deadline deadline);

}  // namespace delayq::bench
