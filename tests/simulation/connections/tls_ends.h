#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "net/tls.h"

struct ssl_st;

namespace delayq::connections {

/// Makes all that OpenSSL draws at random on this thread follow from `seed`, so that a handshake has the same
/// bytes whenever it is replayed. The first call replaces OpenSSL's generator in the whole process.
void seed_tls(uint64_t seed);

/// What the simulated server shows, made once for the process.
const net::TlsContext& server_tls();

/// A client's end of TLS, between two texts.
class TlsClientEnd {
 public:
  explicit TlsClientEnd(bool only_1_2);
  ~TlsClientEnd();
  TlsClientEnd(const TlsClientEnd&) = delete;
  TlsClientEnd& operator=(const TlsClientEnd&) = delete;

  /// Takes what arrived, and appends to `plain` what that says. False: it cannot be understood.
  bool arrive(std::string_view bytes, std::string& plain);
  /// Takes as much of `plain` as can be said now.
  size_t say(std::string_view plain);
  /// What is to be sent now.
  std::string leave();

 private:
  ssl_st* tls_;
};

}  // namespace delayq::connections
