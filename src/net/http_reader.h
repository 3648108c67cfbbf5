#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace delayq::net {

struct HttpLimits {
  size_t header_bytes = 16 * 1024;   ///< also of the trailer behind a chunked body
  size_t body_bytes = 64u << 20;     ///< of a request whose body is kept until it is whole
  size_t dropped_bytes = 64 * 1024;  ///< of a body that is ignored
  size_t chunk_line_bytes = 1024;    ///< of one chunk's size and extension
  /// Of the chunk extensions of one request, besides as many bytes as its body has.
  size_t extension_bytes = 16 * 1024;
};

/// A request, as far as an API needs to see it. The views live until the next call of the reader.
struct HttpRequest {
  std::string_view method;
  std::string_view target;
  std::string_view content_type;
  std::string_view authorization;
  std::string_view host;
  std::string_view origin;      ///< of the page on whose behalf a browser asks; empty: no browser
  std::string_view fetch_site;  ///< the relation of that page to us, from the browser: "cross-site"
  std::string_view accept_encoding;
  std::string_view if_none_match;
  std::string_view last_event_id;  ///< of the stream of events that the client had before
  std::optional<std::string_view> idempotency_key;
  std::string_view body;
  std::optional<uint64_t> content_length;
  bool is_chunked = false;
  bool keep_alive = true;
};

/// Reads HTTP/1.1 requests from bytes, however they are cut. Refuses, with an error that names the part:
/// - every part that is longer than its limit: head, body, chunk line, chunk extensions, trailer;
/// - every request whose end is in doubt (RFC 9112, 6.1 and 6.3): a Transfer-Encoding that is not just
///   "chunked", one beside a Content-Length, one in HTTP/1.0;
/// - HTTP/1.1 without a Host, and any field twice of which one value is used.
class HttpReader {
 public:
  enum class Outcome {
    kPartial,  ///< more bytes are needed
    kHead,     ///< request() is there but for its body: the moment to refuse it, or to ask for the body in
               ///< pieces
    kBody,     ///< request().body has the next piece of a body that comes in pieces
    kRequest,  ///< request() is whole; read() goes on with the next one
    kBroken,   ///< not a request, or one above the limits: answer with status(), then close
  };
  enum class Body {
    kWhole,    ///< kept until all of it is there
    kPieces,   ///< passed on piece by piece, however large it is
    kDropped,  ///< ignored; up to HttpLimits::dropped_bytes
  };

  explicit HttpReader(HttpLimits limits = {});
  ~HttpReader();

  /// Consumes what it can from the front of `input`.
  Outcome read(std::string_view& input);
  /// What to do with the body of the request whose head was just returned.
  void set_body(Body body) { body_ = body; }
  const HttpRequest& request() const { return request_; }
  /// Whether the client waits for "100 Continue" before it sends its body. Call it after kHead.
  bool expects_to_be_asked() const;
  /// Whether a request has arrived in part.
  bool is_amid_request() const { return parser_ != nullptr; }
  /// The request was handled: its memory is released.
  void forget_request();
  /// Bytes of the body that is kept.
  size_t kept() const;
  int status() const { return status_; }
  const std::string& error() const { return error_; }
  /// The header that error() is about; empty when it is about none.
  std::string_view error_field() const { return error_field_; }

 private:
  struct Parser;

  Outcome broken(int status, std::string error);
  /// `header` is a constant.
  Outcome broken_header(int status, std::string_view header, std::string_view problem);
  Outcome read_head(std::string_view& input);
  Outcome read_body(std::string_view& input);
  /// Of the head that was just read.
  Outcome check_head();
  Outcome check_length();
  /// Of a chunked body, what is left of the input when the parser takes no more of it.
  Outcome check_rest(std::string_view rest);
  Outcome too_large(size_t limit);
  void fill_request();

  HttpLimits limits_;
  std::unique_ptr<Parser> parser_;  ///< of the request that is being read
  std::unique_ptr<Parser> done_;    ///< of the last one, which request() looks into
  HttpRequest request_;
  Body body_ = Body::kWhole;
  int status_ = 0;
  std::string error_;
  std::string_view error_field_;
};

}  // namespace delayq::net
