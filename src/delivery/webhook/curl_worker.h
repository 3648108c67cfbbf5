#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <curl/curl.h>

#include "delivery/webhook/curl_transfer.h"
#include "delivery/webhook/exchange.h"
#include "delivery/webhook/socket_watch.h"

namespace delayq::webhook {

/// The thread that makes the calls: libcurl's multi handle, driven by the sockets that have something to
/// tell.
class CurlWorker {
 public:
  static Result<std::unique_ptr<CurlWorker>> open(CurlCallerOptions options);
  /// Breaks off what is in flight.
  ~CurlWorker();
  CurlWorker(const CurlWorker&) = delete;
  CurlWorker& operator=(const CurlWorker&) = delete;

  /// Begins, with the function that tells of results. Once.
  void start(std::function<void()> wake_owner);
  Exchange& exchange() { return exchange_; }

 private:
  CurlWorker(CurlCallerOptions options, SocketWatch watch);
  void run();
  void begin_calls();
  void refuse_late(uint32_t number);
  void react(const SocketWatch::Event& event);
  void collect();
  void end(CurlTransfer& transfer, CURLcode code);
  void break_off();

  static int on_socket(CURL* handle, curl_socket_t socket, int what, void* self, void* unused);
  static int on_timer(CURLM* multi, long timeout_ms, void* self);

  Exchange exchange_;
  std::atomic<bool> is_stopping_ = false;
  SocketWatch watch_;
  TransferSettings settings_;
  CURLM* multi_;
  std::vector<std::unique_ptr<CurlTransfer>> transfers_;  ///< made as they are needed, at most one per call
  std::vector<CurlTransfer*> idle_;
  std::vector<NumberedCall> arrived_;
  std::vector<NumberedResult> ended_;
  std::thread thread_;
};

}  // namespace delayq::webhook
