#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "api/compat/compat.h"
#include "tests/support/http_client.h"

namespace delayq::compat {

/// Removes the whitespace between the tokens: documents show JSON with line breaks, servers send it without.
/// Everything else stays: the order of members, digits, escapes.
inline std::string compact(std::string_view json) {
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_string && c == '\\') {
      out += c;
      out += json[++i];
      continue;
    }
    if (c == '"') in_string = !in_string;
    if (in_string || (c != ' ' && c != '\n')) out += c;
  }
  return out;
}

/// A client of all APIs of one server.
class CompatClient : public http::HttpClient {
 public:
  CompatClient() { host.dialects = {&go_delay_queue(), &callback(), &delayq()}; }

  /// Returns the body of a response that must have this status.
  std::string say_to(std::string_view method, std::string_view target, std::string_view body = {},
                     int status = 200) {
    const Answer answer = ask(method, target, body);
    EXPECT_EQ(answer.status, status) << target << " " << answer.body;
    EXPECT_NE(answer.head.find("Content-Type: application/json; charset=utf-8"), std::string::npos);
    return answer.body;
  }
};

}  // namespace delayq::compat
