#include "api/http/problem.h"

#include <gtest/gtest.h>

#include "core/invalid.h"

namespace delayq::http {
namespace {

TEST(Problem, the_field_is_what_the_detail_starts_with) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"delay: \"x\" is not a duration", "delay"},
      {"delay 2h is out of range", "delay"},
      {"keep_done.time: expected a string", "keep_done.time"},
      {"keep_dead time 20y is out of range", "keep_dead.time"},
      {"rate per 2d is out of range", "rate.per"},
      {"rate 5 is out of range", "rate.count"},
      {"from and to: to must be after from", "to"},
      {"the server is shutting down", ""},
      {"there is no such job", ""},
      {"", ""},
      {"delay", ""},
  };
  for (const auto& [detail, field] : cases)
    EXPECT_EQ(field_of(invalid(std::string(detail))), field) << detail;
}

TEST(Problem, an_unknown_field_may_have_any_name) {
  Error error = invalid("a b: there is no such c: there is no such field");
  error.known.emplace();
  EXPECT_EQ(field_of(error), "a b: there is no such c");
}

TEST(Problem, a_field_of_the_queue_gets_the_requests_name) {
  EXPECT_EQ(renamed(invalid("id is empty"), "id", "ids").detail, "ids: id is empty");
  EXPECT_EQ(renamed(invalid("topic is empty"), "id", "ids").detail, "topic is empty");
}

TEST(Problem, says_what_it_knows_and_no_more) {
  std::string text;
  json::Writer json(text);
  write_problem_document(json, {ErrorCode::kOverloaded, "push", "too much", Millis{1500}}, 429);
  EXPECT_EQ(text, R"({"type":"about:blank","title":"Too Many Requests","status":429,"code":"overloaded",)"
                  R"("detail":"too much","retry_after_ms":1500})");
}

}  // namespace
}  // namespace delayq::http
