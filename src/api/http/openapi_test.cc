// The description has every route and every code that there are, and no other. What is in them is compared
// where it can be asked: tests/e2e/openapi_test.py.
#include "api/http/openapi.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/http/conversation.h"

namespace delayq::http {
namespace {

using testing::HasSubstr;

/// The lines of the description, which is written so that its calls are found by their indentation.
std::set<std::string> described_calls() {
  std::set<std::string> calls;
  std::string_view rest = embedded::openapi_yaml();
  std::string path;
  rest.remove_prefix(rest.find("\npaths:\n"));
  rest = rest.substr(0, rest.find("\ncomponents:\n"));
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with("  /") && line.ends_with(':')) path = line.substr(2, line.size() - 3);
    if (!line.starts_with("    ") || line.size() < 6 || line[4] == ' ' || !line.ends_with(':')) continue;
    std::string method(line.substr(4, line.size() - 5));
    if (method == "parameters") continue;
    std::transform(method.begin(), method.end(), method.begin(),
                   [](char c) { return static_cast<char>(c - 'a' + 'A'); });
    calls.insert(method + " " + path);
  }
  return calls;
}

TEST(OpenApi, has_every_route_and_no_other) {
  std::set<std::string> routes;
  for (const Conversation::Route& route : Conversation::routes())
    routes.insert(fmt::format("{} {}", route.method, route.path));
  EXPECT_EQ(described_calls(), routes);
}

TEST(OpenApi, has_every_error_code_and_no_other) {
  std::vector<std::string_view> names;
  for (const ErrorTraits& traits : kErrorTable) names.push_back(traits.name);
  EXPECT_THAT(std::string(embedded::openapi_yaml()),
              HasSubstr(fmt::format("enum: [{}]\n", fmt::join(names, ", "))));
}

}  // namespace
}  // namespace delayq::http
