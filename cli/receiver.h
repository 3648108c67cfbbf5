#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/address.h"
#include "core/result.h"
#include "core/time.h"
#include "signing/signature.h"

namespace delayq::cli {

/// An HTTP/1.1 request as received. The views point into the bytes it was read from.
struct ReceivedRequest {
  std::string_view method;
  std::string_view target;
  std::vector<std::pair<std::string_view, std::string_view>> headers;  ///< name, value, in their order
  std::string_view body;
  bool keeps_alive = true;

  std::string unchunked;  ///< `body` points into this if it came in chunks

  /// The value of the first header with this name, in any case; empty without one.
  std::string_view header(std::string_view name) const;
};

enum class Reading {
  kPartial,         ///< more bytes are needed
  kAsksToContinue,  ///< the same, and the sender waits for "100 Continue" first
  kWhole,
  kBroken,  ///< not a request that could be answered
};

/// Reads one request from the front of `input` and, if it is complete, removes it. Its bytes must stay where
/// they are as long as the request is used. Headers above 64 KiB and bodies above 65 MiB are broken.
Reading read_request(std::string_view& input, ReceivedRequest& request);

/// An answer's bytes, ready to be sent to any number of requests.
std::string http_answer(int status, std::string_view body);

// ---- requests as `delayq listen` prints them (consumer_verbs.cc)

/// A line for a person: time, request, the fields of the job, whether the signature is right, and the
/// beginning of the body.
///
///   08:00:00.000 POST /hooks/order  topic=order job-id=7 attempt=1  verified  {"uid":1}
std::string call_for_people(const ReceivedRequest& request, signing::Verdict verdict, Moment now);

/// All of it, as a line of JSON: {"at","method","path","verdict","headers":{...},"body" or "body_base64"}.
std::string call_for_programs(const ReceivedRequest& request, signing::Verdict verdict, Moment now);

/// A small HTTP/1.1 server on one thread, with many connections that stay open. A connection that sends
/// anything but requests is closed.
class Receiver {
 public:
  /// Returns the answer: bytes made by http_answer(), which live until the next request.
  using Handler = std::function<std::string_view(const ReceivedRequest&)>;

  /// Listens from now on. Port 0: any free one.
  static Result<Receiver> open(const Address& address);
  ~Receiver();
  Receiver(Receiver&& other) noexcept;
  Receiver& operator=(Receiver&&) = delete;

  uint16_t port() const { return port_; }

  /// Serves until `stop` is readable. Calls `between` whenever all received requests are answered.
  Status run(int stop, const Handler& handler, const std::function<void()>& between);

 private:
  struct Connection;

  Receiver(int epoll, int listener, uint16_t port);
  void accept_all();
  void serve(Connection& connection, const Handler& handler);
  bool answer_all(Connection& connection, const Handler& handler);
  void close(Connection& connection);

  int epoll_;
  int listener_;
  uint16_t port_;
  std::vector<std::unique_ptr<Connection>> connections_;  ///< by their descriptor
  ReceivedRequest request_;
};

}  // namespace delayq::cli
