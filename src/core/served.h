#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "core/time.h"

namespace delayq {

/// The protocols that a server speaks, each on an address of its own. To add one, add its name here, its
/// address to the configuration, and its listener to app/server.cc.
enum class ProtocolKind : uint8_t { kHttp, kResp };
inline constexpr std::array<std::string_view, 2> kProtocolNames{"http", "resp"};
inline constexpr std::array<ProtocolKind, 2> kProtocols{ProtocolKind::kHttp, ProtocolKind::kResp};
constexpr std::string_view name_of(ProtocolKind kind) { return kProtocolNames[static_cast<size_t>(kind)]; }

/// A value for each protocol.
template <class T>
class PerProtocol {
 public:
  constexpr T& operator[](ProtocolKind kind) { return values_[static_cast<size_t>(kind)]; }
  constexpr const T& operator[](ProtocolKind kind) const { return values_[static_cast<size_t>(kind)]; }
  bool operator==(const PerProtocol&) const = default;

 private:
  std::array<T, kProtocols.size()> values_{};
};

/// An answered request as it is logged: caller, target and result. Never its contents, and never a secret.
/// The views are valid only during the call that gets them.
struct Served {
  Moment at{};                  ///< when it was answered
  std::string_view protocol{};  ///< http or resp
  std::string_view peer{};      ///< "127.0.0.1:40312"
  std::string_view token{};     ///< its name; empty: there was none
  std::string_view verb{};      ///< POST, PUSH
  std::string_view target{};    ///< the path without the query, or the topic
  int status = 0;               ///< of HTTP; 0 for a RESP reply that is no error
  std::string_view code{};      ///< the error's name; empty: no error
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
  std::chrono::microseconds took{};
  bool may_wait = false;  ///< a pop that waits for a job: it is not slow, however long it took
};

}  // namespace delayq
