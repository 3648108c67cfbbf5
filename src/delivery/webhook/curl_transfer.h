#pragma once

#include <memory>
#include <string>
#include <vector>

#include <curl/curl.h>

#include "delivery/webhook/call.h"
#include "delivery/webhook/curl_caller.h"

namespace delayq::webhook {

/// What all transfers of one caller have in common. Outlives them.
struct TransferSettings {
  CurlCallerOptions options;
  curl_slist* known_hosts = nullptr;           ///< CURLOPT_RESOLVE
  std::function<void(curl_socket_t)> opened;   ///< a socket was opened
  std::function<void(curl_socket_t)> closing;  ///< and is about to be closed
};

/// One handle of libcurl, for one call at a time: it is set up once and reused.
class CurlTransfer {
 public:
  explicit CurlTransfer(TransferSettings& settings);
  ~CurlTransfer();
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  /// Returns the handle, ready to be added to the multi handle; null when the call is malformed: then call
  /// finish().
  CURL* begin(uint32_t number, Call call);
  /// Returns the result, and forgets the call.
  CallResult finish(CURLcode code);

  CURL* handle() { return handle_; }
  uint32_t number() const { return number_; }
  static CurlTransfer& of(CURL* handle);

 private:
  void set_up();
  void set_method();
  void set_headers();
  CallResult failure(CURLcode code);
  size_t take_body(const char* bytes, size_t count);
  size_t take_header(std::string_view line);
  curl_socket_t open_socket(const curl_sockaddr& address);

  static size_t on_body(char* bytes, size_t size, size_t count, void* self);
  static size_t on_header(char* bytes, size_t size, size_t count, void* self);
  static curl_socket_t on_open(void* self, curlsocktype purpose, curl_sockaddr* address);
  static int on_close(void* settings, curl_socket_t socket);

  TransferSettings& settings_;
  CURL* handle_ = nullptr;
  char error_[CURL_ERROR_SIZE] = {};

  // The call:
  uint32_t number_ = 0;
  Call call_;
  std::vector<curl_slist> header_nodes_;  ///< point into the call; libcurl only reads them
  // And what came so far:
  std::string answer_;
  size_t body_bytes_ = 0;
  size_t header_bytes_ = 0;
  size_t header_lines_ = 0;
  bool is_cut_ = false;
  bool has_opened_ = false;
  std::string refusal_;  ///< why an address was not connected to
  std::optional<RetryAfter> retry_after_;
};

}  // namespace delayq::webhook
