#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <vector>

#include "delivery/webhook/address_guard.h"
#include "delivery/webhook/call.h"

namespace delayq::webhook {

class CurlWorker;

struct NumberedCall {
  uint32_t number = 0;
  Call call;
  std::optional<std::chrono::microseconds> begin_by{};  ///< by the caller's clock; later it is not begun
};

struct NumberedResult {
  uint32_t number = 0;
  CallResult result;
};

/// Opens the socket for a connection to this address, or returns -1 to refuse. Called only for addresses that
/// the guard allows; tests replace it to see that no others get here. Called on the caller's thread.
using SocketOpener = std::function<int(const sockaddr& address, int type, int protocol)>;

struct CurlCallerOptions {
  AddressGuard guard{};
  size_t max_calls = 1'024;  ///< at the same time; each may have a connection, and as many are kept open
  Millis default_timeout = std::chrono::seconds{30};  ///< total, for calls without their own
  std::string user_agent = "delayq";
  std::string ca_file{};         ///< PEM; the trusted authorities, instead of the system's
  bool skips_tls_check = false;  ///< accepts every certificate; for tests
  SocketOpener opener{};         ///< empty: the system's socket()
  /// Steady; read on both threads, for Call::start_within. Empty: no call is ever too late to begin.
  std::function<std::chrono::microseconds()> clock{};
  /// "host:port:address": names with fixed addresses, as in /etc/hosts.
  std::vector<std::string> known_hosts{};
};

/// Calls made by libcurl, all on one thread of its own.
///
///  - Connections are kept and used again; HTTP/2 over TLS where the host offers it, else HTTP/1.1.
///  - Names are resolved on threads of libcurl, so a slow name server does not delay other calls. The address
///    of every connection, wherever it came from (a name, digits in any notation), passes the guard before
///    its socket is opened.
///  - Only http and https. Redirects are answers like others. No proxies, cookies or passwords from the
///    environment.
///  - Answers are bounded: beyond kReadBytes of a body the connection is closed and the answer is taken as it
///    is; beyond kHeaderBytes or kHeaderLines of headers there is no answer.
class CurlCaller : public Caller {
 public:
  static constexpr size_t kReadBytes = size_t{64} << 10;
  static constexpr size_t kHeaderBytes = size_t{64} << 10;
  static constexpr size_t kHeaderLines = 256;

  /// Fails when a file is not there, or when there are no descriptors left for the thread's own needs.
  static Result<std::unique_ptr<CurlCaller>> open(CurlCallerOptions options);
  /// Aborts the calls that are in flight: they are never answered.
  ~CurlCaller() override;

  void call(Call call, Done done) override;
  void hear() override;
  bool poll() override;
  size_t room() const override;
  void set_wakeup(std::function<void()> wakeup) override;

 private:
  CurlCaller(std::unique_ptr<CurlWorker> worker, size_t max_calls,
             std::function<std::chrono::microseconds()> clock);
  void send_off();
  void answer_refused();
  void answer_ended();

  std::unique_ptr<CurlWorker> worker_;
  std::function<std::chrono::microseconds()> clock_;
  std::vector<Done> slots_;           ///< of the calls in flight, by number
  std::vector<uint32_t> free_slots_;  ///< numbers that no call has
  std::vector<Done> refused_;         ///< there was no room for these
  std::vector<NumberedCall> leaving_;
  std::vector<NumberedResult> ended_;
};

}  // namespace delayq::webhook
