#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "core/time.h"

namespace delayq {

/// An answered request as it is logged: caller, target and result. Never its contents, and never a secret.
/// The views live for as long as the call that they are given to.
struct Served {
  Moment at{};                  ///< when it was answered
  std::string_view protocol{};  ///< http or resp
  std::string_view peer{};      ///< "127.0.0.1:40312"
  std::string_view token{};     ///< its name; empty: there was none
  std::string_view verb{};      ///< POST, PUSH
  std::string_view target{};    ///< the path without the query, or the topic
  int status = 0;               ///< of HTTP; 0 for a RESP reply that is no error
  std::string_view code{};      ///< the error's name; empty: it went well
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
  std::chrono::microseconds took{};
  bool may_wait = false;  ///< a pop that waits for a job: it is not slow, however long it took
};

}  // namespace delayq
