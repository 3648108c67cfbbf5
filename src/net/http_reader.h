#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace delayq::net {

struct HttpLimits {
  size_t header_bytes = 16 * 1024;
  size_t body_bytes = 64u << 20;
};

/// A request, as far as an API needs to see it. The views live until the next call of the reader.
struct HttpRequest {
  std::string_view method;
  std::string_view target;
  std::string_view content_type;
  std::string_view authorization;
  std::string_view host;
  std::string_view origin;  ///< of the page that a browser asks for; empty: no browser
  std::string_view body;
  bool keep_alive = true;
};

/// Reads HTTP/1.1 requests from bytes, however they are cut.
class HttpReader {
 public:
  enum class Outcome {
    kPartial,  ///< more bytes are needed
    kRequest,  ///< request() is there; read() goes on with the next one
    kBroken,   ///< no request, or one above the limits: status() is what to answer before closing
  };

  explicit HttpReader(HttpLimits limits = {});
  ~HttpReader();

  /// Takes what it can off the front of `input`. A header is left there until all of it has come.
  Outcome read(std::string_view& input);
  const HttpRequest& request() const { return request_; }
  int status() const { return status_; }
  const std::string& error() const { return error_; }
  /// True once for a request whose client waits to be told to send its body.
  bool take_expectation();

 private:
  struct Parser;

  Outcome broken(int status, std::string error);
  void fill_request();

  HttpLimits limits_;
  std::unique_ptr<Parser> parser_;
  HttpRequest request_;
  bool is_done_ = false;
  bool expects_ = false;
  int status_ = 0;
  std::string error_;
};

}  // namespace delayq::net
