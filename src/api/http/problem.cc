#include "api/http/problem.h"

#include <fmt/format.h>

namespace delayq::http {

Error renamed(Error error, std::string_view queues, std::string_view requests) {
  if (error.field != queues) return error;
  error.field = requests;
  error.detail = fmt::format("{}: {}", requests, error.detail);
  return error;
}

void write_problem(json::Writer& json, const Error& error, int status) {
  json.key("status").number(uint64_t{static_cast<unsigned>(status)});
  json.key("code").text(traits_of(error.code).name).key("detail").text(error.detail);
  if (!error.field.empty()) json.key("field").text(error.field);
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
