#include "api/http/http_reference.h"

#include <fmt/format.h>

#include "api/http/conversation.h"

namespace delayq::http {

namespace {

constexpr std::string_view kHead = R"(# HTTP v1
`curl http://127.0.0.1:9277/v1/topics/order/jobs -d '{"body": {"uid": 1}, "delay": "30m"}'`. This page is written by
`api/http/http_reference.cc` from the routes and the error table, and a test compares them. There is no authentication yet: the
server listens on loopback addresses only unless `server.allow_anonymous` says otherwise, and requests of web pages from
elsewhere are refused.

- HTTP/1.1 with keep-alive and pipelining; a pop that waits holds up what comes behind it on its own connection.
- A body is any JSON value and comes back as it was written. What was pushed as other bytes comes back as text with its
  `content_type`, or in `body_base64` when it is not UTF-8.
- A duration is "250ms", "30s", "1h30m", "7d", or a number of seconds; a moment is RFC 3339 or Unix seconds.
- An unknown field is an error; so is a field given twice. After an error nothing was stored.

| call | | what |
|---|---|---|
)";

constexpr std::string_view kErrors = R"(
## Errors
`application/problem+json` (RFC 9457) with `code`, `detail`, and `field` where there is one; `Retry-After` where it is known.

| code | status |
|---|---|
)";

}  // namespace

std::string http_reference() {
  std::string out(kHead);
  for (const Conversation::Route& route : Conversation::routes()) {
    out += fmt::format("| `{}` | `{}` | {} |\n", route.method, route.path, route.summary);
  }
  out += kErrors;
  for (const ErrorTraits& traits : kErrorTable)
    out += fmt::format("| `{}` | {} |\n", traits.name, traits.http_status);
  return out;
}

}  // namespace delayq::http
