// Export, import and backups over HTTP.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/support/http_client.h"

namespace delayq::http {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class HttpTransferTest : public testing::Test, public HttpClient {
 protected:
  /// The whole answer as it came.
  std::string ask(std::string_view method, std::string_view target, std::string_view body = {}) {
    return say(request(method, target, body));
  }
};

constexpr std::string_view kLine =
    R"({"topic":"t","id":"a","state":"dead","due_at":"2023-11-14T22:13:30.000Z",)"
    R"("pushed_at":"2023-11-14T22:13:20.000Z","attempts":3,"priority":1024,"body_text":"x",)"
    R"("outcome":"it broke","kept_until":"2023-11-15T22:13:30.000Z"})";

TEST_F(HttpTransferTest, lines_come_in_and_go_out_again) {
  const std::string lines = fmt::format("\n{}\r\n{{\n\n", kLine);
  EXPECT_THAT(
      ask("POST", "/v1/import", lines),
      HasSubstr(R"({"results":[{"line":2,"result":"created"},{"line":3,"error":{"status":400,"code":)"));
  EXPECT_THAT(ask("POST", "/v1/import", kLine), HasSubstr(R"("code":"conflict")"));
  EXPECT_THAT(ask("POST", "/v1/import?on_conflict=keep", kLine), HasSubstr(R"("result":"kept")"));
  EXPECT_THAT(ask("POST", "/v1/import?on_conflict=replace", kLine), HasSubstr(R"("result":"replaced")"));
  const std::string page = ask("GET", "/v1/export");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(page, HasSubstr("Content-Type: application/x-ndjson\r\n"));
  EXPECT_THAT(page, Not(HasSubstr("Delayq-Cursor")));
  EXPECT_THAT(page, testing::EndsWith(fmt::format("\r\n\r\n{}\n", kLine)));
}

TEST_F(HttpTransferTest, pages_have_cursors) {
  ask("POST", "/v1/topics/t/jobs", R"({"id":"a","body":1})");
  ask("POST", "/v1/topics/t/jobs", R"({"id":"b","body":1})");
  const std::string page = ask("GET", "/v1/export?limit=1&topic=t&state=ready");
  const size_t start = page.find("Delayq-Cursor: ");
  ASSERT_NE(start, std::string::npos) << page;
  const std::string cursor = page.substr(start + 15, page.find('\r', start) - start - 15);
  EXPECT_THAT(ask("GET", fmt::format("/v1/export?limit=1&topic=t&state=ready&cursor={}", cursor)),
              HasSubstr(R"("id":"b")"));
}

TEST_F(HttpTransferTest, wrong_questions) {
  EXPECT_THAT(ask("GET", "/v1/export?state=gone"), HasSubstr("400"));
  EXPECT_THAT(ask("GET", "/v1/export?cursor=x"), HasSubstr("400"));
  EXPECT_THAT(ask("POST", "/v1/import?on_conflict=maybe", kLine), HasSubstr("on_conflict"));
  EXPECT_THAT(ask("POST", "/v1/import", " \n"), HasSubstr("400"));
  std::string many;
  for (uint32_t i = 0; i <= Limits::kBatchJobs; ++i) many += "{}\n";
  EXPECT_THAT(ask("POST", "/v1/import", many), HasSubstr("413"));
  EXPECT_THAT(ask("POST", "/v1/backups", "{}"), HasSubstr("name"));
  EXPECT_THAT(ask("POST", "/v1/backups", R"({"name":"a b"})"), HasSubstr("400"));
  EXPECT_THAT(ask("POST", "/v1/backups", R"({"name":"a"})"), HasSubstr("503"));
}

}  // namespace
}  // namespace delayq::http
