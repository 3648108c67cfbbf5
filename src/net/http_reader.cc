#include "net/http_reader.h"

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/parser.hpp>
#include <fmt/format.h>

namespace delayq::net {

namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

/// A body that grows with what has come, whatever its length is said to be: a claim costs nothing.
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

}  // namespace

struct HttpReader::Parser {
  http::request_parser<GrowingBody> message;
};

HttpReader::HttpReader(HttpLimits limits) : limits_(limits) {}
HttpReader::~HttpReader() = default;

HttpReader::Outcome HttpReader::broken(int status, std::string error) {
  status_ = status;
  error_ = std::move(error);
  return Outcome::kBroken;
}

HttpReader::Outcome HttpReader::too_large() {
  return broken(413, fmt::format("the request's body has more than {} bytes", limits_.body_bytes));
}

HttpReader::Outcome HttpReader::read(std::string_view& input) {
  if (parser_ != nullptr && parser_->message.is_header_done()) return read_body(input);
  return read_head(input);
}

HttpReader::Outcome HttpReader::read_head(std::string_view& input) {
  if (input.empty()) return Outcome::kPartial;
  if (parser_ == nullptr) {
    parser_ = std::make_unique<Parser>();
    parser_->message.header_limit(static_cast<uint32_t>(limits_.header_bytes));
    parser_->message.body_limit(boost::none);  // ours is known only when the request is
    body_ = Body::kWhole;
  }
  error_code problem;
  const size_t taken = parser_->message.put(boost::asio::buffer(input.data(), input.size()), problem);
  input.remove_prefix(taken);
  // A header is read only when it is whole; without a bound it could grow for ever.
  if (problem == http::error::header_limit ||
      (problem == http::error::need_more && input.size() > limits_.header_bytes))
    return broken(431, fmt::format("the header has more than {} bytes", limits_.header_bytes));
  if (problem == http::error::need_more) return Outcome::kPartial;
  if (problem) return broken(400, fmt::format("not a request: {}", problem.message()));
  if (!parser_->message.is_header_done()) return Outcome::kPartial;
  fill_request();
  return Outcome::kHead;
}

HttpReader::Outcome HttpReader::read_body(std::string_view& input) {
  std::string& body = parser_->message.get().body();
  if (body_ != Body::kWhole) body.clear();  // the last piece was looked at
  if (body_ == Body::kWhole && request_.content_length.value_or(0) > limits_.body_bytes) return too_large();
  while (!parser_->message.is_done() && !input.empty()) {
    error_code problem;
    const size_t taken = parser_->message.put(boost::asio::buffer(input.data(), input.size()), problem);
    input.remove_prefix(taken);
    if (problem && problem != http::error::need_more)
      return broken(400, fmt::format("not a request: {}", problem.message()));
    if (body_ == Body::kDropped) body.clear();
    if (body_ == Body::kWhole && body.size() > limits_.body_bytes) return too_large();
    if (problem == http::error::need_more || taken == 0) break;
  }
  request_.body = body;
  if (parser_->message.is_done()) {
    done_ = std::move(parser_);
    return Outcome::kRequest;
  }
  return body_ == Body::kPieces && !body.empty() ? Outcome::kBody : Outcome::kPartial;
}

void HttpReader::fill_request() {
  const auto& message = parser_->message.get();
  request_ = {};
  request_.method = view(message.method_string());
  request_.target = view(message.target());
  request_.content_type = view(message[http::field::content_type]);
  request_.authorization = view(message[http::field::authorization]);
  request_.host = view(message[http::field::host]);
  request_.origin = view(message[http::field::origin]);
  request_.accept_encoding = view(message[http::field::accept_encoding]);
  request_.idempotency_key = view(message["Idempotency-Key"]);
  request_.keep_alive = message.keep_alive();
  request_.is_chunked = parser_->message.chunked();
  if (const auto length = parser_->message.content_length()) request_.content_length = *length;
}

bool HttpReader::expects_to_be_asked() const {
  return parser_ != nullptr && view(parser_->message.get()[http::field::expect]) == "100-continue";
}

}  // namespace delayq::net
