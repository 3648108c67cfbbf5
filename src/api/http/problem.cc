#include "api/http/problem.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace delayq::http {

namespace {

/// What some of the queue's details start with, and the field that they mean.
struct Beginning {
  std::string_view words;
  std::string_view field;
};
constexpr std::array kBeginnings{
    Beginning{"keep_done time ", "keep_done.time"},
    Beginning{"keep_dead time ", "keep_dead.time"},
    Beginning{"rate per ", "rate.per"},
    Beginning{"rate ", "rate.count"},
    Beginning{"from and to", "to"},
};
/// Those that others start with, with a space behind them.
constexpr std::array<std::string_view, 29> kFields{"topic",
                                                   "id",
                                                   "group",
                                                   "body",
                                                   "delay",
                                                   "at",
                                                   "priority",
                                                   "attempts",
                                                   "lease",
                                                   "count",
                                                   "wait",
                                                   "callback",
                                                   "reason",
                                                   "topics",
                                                   "leases",
                                                   "bins",
                                                   "content_type",
                                                   "backoff",
                                                   "concurrency",
                                                   "limit",
                                                   "name",
                                                   "delivery",
                                                   "callback_method",
                                                   "callback_timeout",
                                                   "callback_format",
                                                   "callback_secrets",
                                                   "redis_key",
                                                   "redis_content",
                                                   "redis_maxlen"};

/// Of the names of fields and headers.
constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.-";

}  // namespace

std::string_view field_of(const Error& error) {
  const std::string_view detail = error.detail;
  // The name is whatever the client wrote.
  if (error.known) return detail.substr(0, detail.rfind(kNoSuch));
  for (const Beginning& beginning : kBeginnings) {
    if (detail.starts_with(beginning.words)) return beginning.field;
  }
  const size_t end = detail.find_first_not_of(kLetters);
  if (end == 0 || end == std::string_view::npos) return {};
  const std::string_view word = detail.substr(0, end);
  const bool is_field = std::find(kFields.begin(), kFields.end(), word) != kFields.end();
  return detail[end] == ':' || (detail[end] == ' ' && is_field) ? word : std::string_view();
}

Error renamed(Error error, std::string_view queues, std::string_view requests) {
  if (field_of(error) == queues) error.detail = fmt::format("{}: {}", requests, error.detail);
  return error;
}

void write_problem(json::Writer& json, const Error& error, int status) {
  json.key("status").number(uint64_t{static_cast<unsigned>(status)});
  json.key("code").text(traits_of(error.code).name).key("detail").text(error.detail);
  if (const std::string_view field = field_of(error); !field.empty()) json.key("field").text(field);
  if (error.known) {
    json.key("known").begin_array();
    for (const std::string_view name : *error.known) json.text(name);
    json.end_array();
  }
  if (error.retry_after > Millis::zero())
    json.key("retry_after_ms").number(static_cast<uint64_t>(error.retry_after.count()));
}

void write_problem_document(json::Writer& json, const Error& error, int status) {
  json.begin_object().key("type").text("about:blank").key("title").text(reason_phrase(status));
  write_problem(json, error, status);
  json.end_object();
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 413:
      return "Payload Too Large";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 507:
      return "Insufficient Storage";
    default:
      return "Unknown";
  }
}

}  // namespace delayq::http
