#include "net/http_reader.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/parser.hpp>
#include <fmt/format.h>

#include "core/text.h"

namespace delayq::net {

namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

/// A body that grows with the bytes that have arrived, not with its Content-Length, which a client can claim
/// at no cost.
struct GrowingBody {
  using value_type = std::string;

  class reader {  // NOLINT(readability-identifier-naming): the name that Beast asks a body for
   public:
    template <bool kIsRequest, class Fields>
    explicit reader(http::header<kIsRequest, Fields>&, value_type& body) : body_(body) {}
    void init(const boost::optional<uint64_t>&, error_code& problem) { problem = {}; }
    template <class Buffers>
    size_t put(const Buffers& buffers, error_code& problem) {
      problem = {};
      size_t count = 0;
      for (const auto buffer : boost::beast::buffers_range_ref(buffers)) {
        body_.append(static_cast<const char*>(buffer.data()), buffer.size());
        count += buffer.size();
      }
      return count;
    }
    void finish(error_code& problem) { problem = {}; }

   private:
    value_type& body_;
  };
};

/// A field of a head: its first value, and how often it is there.
struct Seen {
  std::string_view value;
  size_t count = 0;
};

/// The fields of a head that are used. All are found in one pass: each search of Beast's walks a tree and
/// compares names letter by letter.
struct Head {
  Seen host, origin, fetch_site, authorization, content_type, accept_encoding, if_none_match, idempotency_key;
  Seen content_length, transfer_encoding, expect, last_event_id;

  /// Null for a field that is not used.
  Seen* find(http::field known, boost::beast::string_view name) {
    switch (known) {
      case http::field::host:
        return &host;
      case http::field::origin:
        return &origin;
      case http::field::authorization:
        return &authorization;
      case http::field::content_type:
        return &content_type;
      case http::field::accept_encoding:
        return &accept_encoding;
      case http::field::if_none_match:
        return &if_none_match;
      case http::field::content_length:
        return &content_length;
      case http::field::transfer_encoding:
        return &transfer_encoding;
      case http::field::expect:
        return &expect;
      default:
        break;
    }
    if (boost::beast::iequals(name, "Idempotency-Key")) return &idempotency_key;
    if (boost::beast::iequals(name, "Last-Event-ID")) return &last_event_id;
    return boost::beast::iequals(name, "Sec-Fetch-Site") ? &fetch_site : nullptr;
  }
};

}  // namespace

struct HttpReader::Parser {
  http::request_parser<GrowingBody> message;
  Head head;
  size_t header_bytes = 0;  ///< that were taken
  uint64_t body_bytes = 0;  ///< that have come
  uint64_t extension_bytes = 0;
  bool is_at_line = false;  ///< what comes next begins a line after the first
  std::function<void(uint64_t, boost::beast::string_view, error_code&)> on_chunk;

  static uint8_t is_blank(char c) { return static_cast<uint8_t>((c == ' ' ? 1 : 0) | (c == '\t' ? 1 : 0)); }
  /// Whether a line of the head begins with a blank. Beast joins it to the field before, as other readers on
  /// the way may or may not do (RFC 9112, 5.2). `text` is what was taken since the last call.
  bool has_folded_line(std::string_view text) {
    if (text.empty()) return false;
    uint8_t folded = is_at_line ? is_blank(text.front()) : 0;
    // Without branches and in bytes, so that the compiler makes it look at many characters at once.
    for (size_t i = 1; i < text.size(); ++i) {
      folded |= static_cast<uint8_t>((text[i - 1] == '\n' ? 1 : 0) & is_blank(text[i]));
    }
    is_at_line = text.back() == '\n';
    return folded != 0;
  }
};

HttpReader::HttpReader(HttpLimits limits) : limits_(limits) {}
HttpReader::~HttpReader() = default;

void HttpReader::forget_request() {
  request_ = {};
  done_.reset();
}

size_t HttpReader::kept() const {
  size_t bytes = 0;
  for (const auto* parser : {&parser_, &done_}) {
    if (*parser != nullptr) bytes += (*parser)->message.get().body().capacity();
  }
  return bytes;
}

HttpReader::Outcome HttpReader::broken(int status, std::string error) {
  status_ = status;
  error_ = std::move(error);
  return Outcome::kBroken;
}

HttpReader::Outcome HttpReader::broken_header(int status, std::string_view header, std::string_view problem) {
  error_field_ = header;
  return broken(status, fmt::format("{}: {}", header, problem));
}

HttpReader::Outcome HttpReader::too_large(size_t limit) {
  return broken(413, fmt::format("the request's body has more than {} bytes", limit));
}

HttpReader::Outcome HttpReader::read(std::string_view& input) {
  if (parser_ != nullptr && parser_->message.is_header_done()) return read_body(input);
  return read_head(input);
}

HttpReader::Outcome HttpReader::read_head(std::string_view& input) {
  if (input.empty()) return Outcome::kPartial;
  if (parser_ == nullptr) {
    // An error of this request must not be reported as one of the request before.
    request_ = {};
    done_.reset();
    parser_ = std::make_unique<Parser>();
    parser_->message.header_limit(static_cast<uint32_t>(limits_.header_bytes));
    parser_->message.body_limit(boost::none);  // our limit depends on the request
    body_ = Body::kWhole;
  }
  error_code problem;
  const size_t taken = parser_->message.put(boost::asio::buffer(input.data(), input.size()), problem);
  if (parser_->has_folded_line(input.substr(0, taken)))
    return broken(400, "not a request: a field goes on in the next line");
  input.remove_prefix(taken);
  // The parser limits only what it is given at once; of lines that arrive one by one it accepts any number.
  parser_->header_bytes += taken;
  const size_t waiting = problem == http::error::need_more ? input.size() : 0;
  if (problem == http::error::header_limit || parser_->header_bytes + waiting > limits_.header_bytes)
    return broken(431, fmt::format("the header has more than {} bytes", limits_.header_bytes));
  if (problem == http::error::need_more) return Outcome::kPartial;
  if (problem) return broken(400, fmt::format("not a request: {}", problem.message()));
  if (!parser_->message.is_header_done()) return Outcome::kPartial;
  fill_request();
  return check_head();
}

HttpReader::Outcome HttpReader::check_head() {
  // If there are several values, each proxy on the way might use another one.
  constexpr std::array<std::pair<std::string_view, Seen Head::*>, 6> kOnlyOnce{
      {{"Host", &Head::host},
       {"Origin", &Head::origin},
       {"Authorization", &Head::authorization},
       {"Content-Type", &Head::content_type},
       {"Last-Event-ID", &Head::last_event_id},
       {"Idempotency-Key", &Head::idempotency_key}}};
  const Head& head = parser_->head;
  for (const auto& [name, seen] : kOnlyOnce) {
    if ((head.*seen).count > 1) return broken_header(400, name, "is there more than once");
  }
  constexpr unsigned kHttp11 = 11;
  if (parser_->message.get().version() >= kHttp11 && head.host.count == 0)
    return broken_header(400, "Host", "is missing; HTTP/1.1 needs it");
  if (head.host.count > 0 && request_.host.empty()) return broken_header(400, "Host", "has no name in it");
  return check_length();
}

HttpReader::Outcome HttpReader::check_length() {
  const Head& head = parser_->head;
  // Beast also accepts a list of equal values.
  if (head.content_length.count > 0) {
    const std::string_view digits = head.content_length.value;
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (head.content_length.count > 1 || digits.empty() ||
        !std::all_of(digits.begin(), digits.end(), is_digit))
      return broken_header(400, "Content-Length", "expected one number");
  }
  const size_t count = head.transfer_encoding.count;
  if (count == 0) return Outcome::kHead;
  constexpr unsigned kHttp11 = 11;
  constexpr int kNotImplemented = 501;
  const std::string coding = lowered(trimmed(head.transfer_encoding.value));
  if (parser_->message.get().version() < kHttp11)
    return broken_header(400, "Transfer-Encoding", "is not allowed in HTTP/1.0");
  if (head.content_length.count > 0)
    return broken_header(400, "Transfer-Encoding", "must not be used together with Content-Length");
  if (count == 1 && coding == "chunked") {
    parser_->on_chunk = [this](uint64_t, boost::beast::string_view extension, error_code& problem) {
      parser_->extension_bytes += extension.size();
      if (parser_->extension_bytes > limits_.extension_bytes + parser_->body_bytes)
        problem = http::error::bad_chunk_extension;
    };
    parser_->message.on_chunk_header(parser_->on_chunk);
    return Outcome::kHead;
  }
  // A body with a further coding has at least a known end; of the others the end is in doubt.
  const bool has_end = count == 1 && coding.ends_with("chunked") && coding.find(',') != std::string::npos;
  return broken_header(has_end ? kNotImplemented : 400, "Transfer-Encoding",
                       "expected chunked, and nothing else");
}

HttpReader::Outcome HttpReader::read_body(std::string_view& input) {
  std::string& body = parser_->message.get().body();
  if (body_ != Body::kWhole) body.clear();  // the last piece was handled
  if (body_ == Body::kWhole && request_.content_length.value_or(0) > limits_.body_bytes)
    return too_large(limits_.body_bytes);
  if (body_ == Body::kDropped && request_.content_length.value_or(0) > limits_.dropped_bytes)
    return too_large(limits_.dropped_bytes);
  while (!parser_->message.is_done() && !input.empty()) {
    error_code problem;
    const size_t before = body.size();
    const size_t taken = parser_->message.put(boost::asio::buffer(input.data(), input.size()), problem);
    input.remove_prefix(taken);
    parser_->body_bytes += body.size() - before;
    if (problem == http::error::bad_chunk_extension &&
        parser_->extension_bytes > limits_.extension_bytes + parser_->body_bytes)
      return broken(400,
                    fmt::format("the chunk extensions have more than {} bytes", limits_.extension_bytes));
    if (problem && problem != http::error::need_more)
      return broken(400, fmt::format("not a request: {}", problem.message()));
    if (body_ == Body::kDropped) body.clear();
    if (body_ == Body::kDropped && parser_->body_bytes > limits_.dropped_bytes)
      return too_large(limits_.dropped_bytes);
    if (body_ == Body::kWhole && body.size() > limits_.body_bytes) return too_large(limits_.body_bytes);
    if (problem == http::error::need_more || taken == 0) break;
  }
  if (request_.is_chunked && !parser_->message.is_done()) {
    if (const Outcome outcome = check_rest(input); outcome == Outcome::kBroken) return outcome;
  }
  request_.body = body;
  if (parser_->message.is_done()) {
    done_ = std::move(parser_);
    return Outcome::kRequest;
  }
  return body_ == Body::kPieces && !body.empty() ? Outcome::kBody : Outcome::kPartial;
}

/// The parser consumes a chunk's line, and the trailer after the last chunk, only when it is complete;
/// without a bound the part that has arrived could grow for ever.
HttpReader::Outcome HttpReader::check_rest(std::string_view rest) {
  constexpr std::string_view kLineEnd = "\r\n";
  const size_t begin = rest.starts_with(kLineEnd) ? kLineEnd.size() : 0;  // of the chunk before
  const size_t end = std::min(rest.find(kLineEnd, begin), rest.size());
  if (end - begin > limits_.chunk_line_bytes)
    return broken(
        400, fmt::format("a chunk's size and extension have more than {} bytes", limits_.chunk_line_bytes));
  if (rest.size() - end > limits_.header_bytes)
    return broken(431, fmt::format("the trailer has more than {} bytes", limits_.header_bytes));
  return Outcome::kPartial;
}

void HttpReader::fill_request() {
  const auto& message = parser_->message.get();
  Head& head = parser_->head;
  for (const auto& field : message) {
    Seen* const seen = head.find(field.name(), field.name_string());
    if (seen != nullptr && seen->count++ == 0) seen->value = view(field.value());
  }
  request_ = {};
  request_.method = view(message.method_string());
  request_.target = view(message.target());
  request_.content_type = head.content_type.value;
  request_.last_event_id = head.last_event_id.value;
  request_.authorization = head.authorization.value;
  request_.host = head.host.value;
  request_.origin = head.origin.value;
  request_.fetch_site = head.fetch_site.value;
  request_.accept_encoding = head.accept_encoding.value;
  request_.if_none_match = head.if_none_match.value;
  if (head.idempotency_key.count > 0) request_.idempotency_key = head.idempotency_key.value;
  request_.keep_alive = message.keep_alive();
  request_.is_chunked = parser_->message.chunked();
  if (const auto length = parser_->message.content_length()) request_.content_length = *length;
}

bool HttpReader::expects_to_be_asked() const {
  return parser_ != nullptr && boost::beast::iequals(parser_->head.expect.value, "100-continue");
}

}  // namespace delayq::net
