// The description has every route and every code that there are, and no other. What is in them is compared
// where it can be asked: tests/e2e/openapi_test.py.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/http/conversation.h"
#include "api/http/v1.h"
#include "core/token.h"

namespace delayq::http {
namespace {

using testing::HasSubstr;

using Calls = std::map<std::string, std::set<std::string>>;

std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// The calls with the scopes that they need. The description is written so that they are found by their
/// indentation.
Calls described_calls() {
  Calls calls;
  std::string_view rest = embedded::openapi_yaml();
  rest.remove_prefix(rest.find("\npaths:\n"));
  rest = rest.substr(0, rest.find("\ncomponents:\n"));
  std::string path;
  std::string call;
  while (!rest.empty()) {
    const std::string_view line = take_line(rest);
    if (line.starts_with("  /") && line.ends_with(':')) path = line.substr(2, line.size() - 3);
    if (line.starts_with("      security: ")) {
      for (const std::string_view name : kScopeNames) {
        const std::string scope = fmt::format("{{bearerAuth: [{}]}}", name);
        if (line.find(scope) != std::string_view::npos) calls[call].emplace(name);
      }
    }
    if (!line.starts_with("    ") || line.size() < 6 || line[4] == ' ' || !line.ends_with(':')) continue;
    std::string method(line.substr(4, line.size() - 5));
    if (method == "parameters") continue;
    std::transform(method.begin(), method.end(), method.begin(),
                   [](char c) { return static_cast<char>(c - 'a' + 'A'); });
    call = fmt::format("{} {}", method, path);
    calls[call];
  }
  return calls;
}

TEST(OpenApi, has_every_route_with_its_scopes_and_no_other) {
  Calls routes;
  for (const Dialect::Route& route : v1().routes) {
    auto& scopes = routes[fmt::format("{} {}", route.method, route.path)];
    for (size_t i = 0; i < kScopeNames.size(); ++i) {
      if ((route.scopes & only(static_cast<Scope>(i))) != 0) scopes.emplace(kScopeNames[i]);
    }
  }
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
