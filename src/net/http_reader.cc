#include "net/http_reader.h"

#include <optional>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <fmt/format.h>

namespace delayq::net {

namespace {

namespace http = boost::beast::http;

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

struct HttpReader::Parser {
  http::request_parser<http::string_body> message;
  bool was_asked = false;  ///< whether to send the body
};

HttpReader::HttpReader(HttpLimits limits) : limits_(limits) {}
HttpReader::~HttpReader() = default;

HttpReader::Outcome HttpReader::broken(int status, std::string error) {
  status_ = status;
  error_ = std::move(error);
  return Outcome::kBroken;
}

HttpReader::Outcome HttpReader::read(std::string_view& input) {
  if (parser_ == nullptr || is_done_) {
    parser_ = std::make_unique<Parser>();
    parser_->message.header_limit(static_cast<uint32_t>(limits_.header_bytes));
    parser_->message.body_limit(limits_.body_bytes);
    parser_->message.eager(true);
    is_done_ = false;
  }
  if (input.empty()) return Outcome::kPartial;
  boost::system::error_code problem;
  const size_t taken = parser_->message.put(boost::asio::buffer(input.data(), input.size()), problem);
  input.remove_prefix(taken);
  if (parser_->message.is_header_done() && !parser_->was_asked && !parser_->message.is_done()) {
    parser_->was_asked = true;
    expects_ = view(parser_->message.get()[http::field::expect]) == "100-continue";
  }
  if (problem == http::error::need_more) {
    // A header is read only when it is whole; without a bound it could grow for ever.
    if (!parser_->message.is_header_done() && input.size() > limits_.header_bytes)
      return broken(431, fmt::format("the header has more than {} bytes", limits_.header_bytes));
    return Outcome::kPartial;
  }
  if (problem == http::error::header_limit)
    return broken(431, fmt::format("the header has more than {} bytes", limits_.header_bytes));
  if (problem == http::error::body_limit)
    return broken(413, fmt::format("the body has more than {} bytes", limits_.body_bytes));
  if (problem) return broken(400, fmt::format("not a request: {}", problem.message()));
  if (!parser_->message.is_done()) return Outcome::kPartial;
  is_done_ = true;
  fill_request();
  return Outcome::kRequest;
}

void HttpReader::fill_request() {
  const auto& message = parser_->message.get();
  request_.method = view(message.method_string());
  request_.target = view(message.target());
  request_.content_type = view(message[http::field::content_type]);
  request_.authorization = view(message[http::field::authorization]);
  request_.host = view(message[http::field::host]);
  request_.origin = view(message[http::field::origin]);
  request_.body = message.body();
  request_.keep_alive = message.keep_alive();
}

bool HttpReader::take_expectation() { return std::exchange(expects_, false); }

}  // namespace delayq::net
