// How answers leave.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "api/http/conversation.h"
#include "api/http/problem.h"

namespace delayq::http {

namespace {

/// The path alone: a query may have anything in it.
std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

}  // namespace

size_t Conversation::most_answered() const {
  // One result for each thing that a request names: its own size bounds that.
  constexpr size_t kResultPerByte = 8;
  const size_t results = most_bytes(api::AnswerKind::kShort) + kResultPerByte * reader_.request().body.size();
  if (!current_ || !has_route() || current_->refusal) return most_bytes(api::AnswerKind::kShort);
  if (const Dialect::Route* route = current_->dialect_route; route != nullptr) {
    if (route->scopes == 0 || (route->scopes & only(Scope::kRead)) == 0) return results;
    const bool is_for_consumers = (route->scopes & only(Scope::kConsume)) != 0;
    return most_bytes(is_for_consumers ? api::AnswerKind::kJob : api::AnswerKind::kJobs);
  }
  const Handler handler = current_->route->handler;
  if (handler == &Conversation::get) return most_bytes(api::AnswerKind::kJob);
  if (handler == &Conversation::list || handler == &Conversation::export_page)
    return most_bytes(api::AnswerKind::kJobs);
  if (handler == &Conversation::topics || handler == &Conversation::metrics)
    return most_bytes(api::AnswerKind::kNames);
  // Most of what it may answer is promised only when its jobs have come: a client could promise it to itself
  // with a head alone. Until then its results count as a part of the request (kept()).
  if (handler == &Conversation::push_many) return most_bytes(api::AnswerKind::kShort);
  return results;
}

Conversation::Place Conversation::reserve() {
  const Place place = replies_.reserve(most_answered());
  const net::HttpRequest& request = reader_.request();
  const bool takes_gzip = accepts_gzip(request.accept_encoding);
  const bool is_logged = front_.served != nullptr;
  if (is_closing_) last_place_ = place;
  const bool is_head = request.method == "HEAD";
  if (!takes_gzip && !is_logged && !is_head && claim_ == nullptr) return place;
  Asked asked;
  asked.is_head = is_head;
  asked.takes_gzip = takes_gzip;
  asked.claim = std::exchange(claim_, nullptr);
  if (is_logged) {
    asked.verb = request.method;
    asked.target = path_of(request.target);
    asked.token = caller_.name();
    asked.bytes_in = std::max<uint64_t>(request.body.size(), request.content_length.value_or(0));
    asked.begun = front_.stopwatch();
    asked.may_wait = may_wait();
  }
  asked_.emplace(place, std::move(asked));
  return place;
}

void Conversation::answer(Place place, Write write) {
  constexpr size_t kUsual = 240;
  Response response;
  response.body.reserve(kUsual);
  json::Writer json(response.body);
  response.status = write(json);
  send(place, std::move(response));
}

void Conversation::reply(Write write) { answer(reserve(), write); }

void Conversation::turn_away(const Error& error, int status) {
  Served served = about("http", reader_.request().method);
  served.target = path_of(reader_.request().target);
  served.status = traits_of(error.code).http_status;
  tell_if_turned_away(served, error);
  const bool is_wrong_method = !has_route() && !current_->allowed.empty();
  if (!is_wrong_method) return refuse_current(error, status, {});
  refuse_current(error, 405, fmt::format("Allow: {}\r\n", current_->allowed));
}

void Conversation::refuse_current(const Error& error, int status, std::string headers) {
  const Place place = reserve();
  if (!current_ || current_->dialect == nullptr) return problem(place, error, status, std::move(headers));
  Response response = current_->dialect->refusal(error, status);
  response.headers = std::move(headers);
  send_refusal(place, error, std::move(response));
}

void Conversation::problem(Place place, const Error& error, int status, std::string headers) {
  Response response;
  response.content_type = "application/problem+json";
  response.status = status != 0 ? status : traits_of(error.code).http_status;
  response.headers = std::move(headers);
  json::Writer json(response.body);
  write_problem_document(json, error, response.status);
  send_refusal(place, error, std::move(response));
}

void Conversation::send_refusal(Place place, const Error& error, Response response) {
  front_.http.refuse(error.code);
  if (error.code == ErrorCode::kUnauthorized) response.headers += "WWW-Authenticate: Bearer\r\n";
  if (error.retry_after > Millis::zero()) {
    response.headers += fmt::format("Retry-After: {}\r\n",
                                    std::chrono::ceil<std::chrono::seconds>(error.retry_after).count());
  }
  send(place, std::move(response), traits_of(error.code).name);
}

void Conversation::send(Place place, Response response, std::string_view code) {
  Asked asked;
  if (const auto found = asked_.find(place); found != asked_.end()) {
    asked = std::move(found->second);
    asked_.erase(found);
  }
  // Noted even when nobody listens any more: that client is the one who will ask again.
  if (asked.claim != nullptr) {
    if (response.status < 300 && code.empty()) {
      host_.idempotency.finish(asked.claim, response);
    } else {
      host_.idempotency.abandon(asked.claim);
    }
  }
  if (!asked.verb.empty()) tell(asked, response.status, code, response.body.size());
  if (connection_ == nullptr) return;
  replies_.fill(place, [&](std::string& out) {
    write_response(out, response, {asked.takes_gzip, asked.is_head, last_place_ == place});
  });
  connection_->on_output();
}

void Conversation::tell(const Asked& asked, int status, std::string_view code, size_t bytes) {
  Served served = about("http", asked.verb);
  served.token = asked.token;
  served.target = asked.target;
  served.status = status;
  served.code = code;
  served.bytes_in = asked.bytes_in;
  served.bytes_out = bytes;
  served.took = std::chrono::duration_cast<std::chrono::microseconds>(front_.stopwatch() - asked.begun);
  served.may_wait = asked.may_wait;
  front_.served(served);
}

}  // namespace delayq::http
