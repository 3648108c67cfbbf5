#include "api/http/dashboard.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http_client.h"

namespace delayq::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class DashboardTest : public testing::Test, public HttpClient {
 protected:
  DashboardTest() { host.dialects = {dashboard().begin(), dashboard().end()}; }

  Answer get(std::string_view target, std::string_view headers = {}) {
    return ask("GET", target, {}, "text/plain", headers);
  }
  /// The value of `name="ui/..."` in the page.
  std::string link(std::string_view name) {
    const std::string page = get("/").body;
    const size_t start = page.find(fmt::format("{}=\"ui/", name)) + name.size() + 2;
    return page.substr(start, page.find('"', start) - start);
  }
  static std::string tag(const Answer& answer) {
    const size_t start = answer.head.find("ETag: ") + 6;
    return answer.head.substr(start, answer.head.find("\r\n", start) - start);
  }
};

TEST_F(DashboardTest, the_page_refers_to_its_files_by_relative_names) {
  const Answer page = get("/?lang=zh");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, AllOf(StartsWith("<!doctype html>"), Not(HasSubstr("=\"/"))));
  const Answer script = get("/" + link("src"));
  EXPECT_EQ(script.status, 200);
  EXPECT_THAT(script.head, AllOf(HasSubstr("text/javascript"), HasSubstr("immutable")));
  EXPECT_EQ(get("/ui/app.js").status, 404) << "a name without a tag is nobody's";
}

TEST_F(DashboardTest, no_page_may_be_around_it_and_no_script_within_it) {
  EXPECT_THAT(get("/").head,
              AllOf(HasSubstr("default-src 'none'; script-src 'self'"), HasSubstr("frame-ancestors 'none'"),
                    HasSubstr("X-Frame-Options: DENY"), Not(HasSubstr("unsafe-inline"))));
}

TEST_F(DashboardTest, files_are_sent_compressed_to_those_who_accept_that) {
  const Answer plain = get("/");
  const Answer packed = get("/", "Accept-Encoding: gzip\r\n");
  EXPECT_THAT(plain.head, AllOf(Not(HasSubstr("Content-Encoding")), HasSubstr("Vary: Accept-Encoding")));
  EXPECT_THAT(packed.head, AllOf(HasSubstr("Content-Encoding: gzip"), HasSubstr("Vary: Accept-Encoding")));
  EXPECT_LT(packed.body.size(), plain.body.size());
  EXPECT_THAT(ask("HEAD", "/").body, IsEmpty());
}

TEST_F(DashboardTest, what_a_browser_has_is_not_sent_again) {
  const Answer page = get("/");
  EXPECT_THAT(page.head, HasSubstr("Cache-Control: no-cache"));
  const Answer again = get("/", fmt::format("If-None-Match: W/\"other\", {}\r\n", tag(page)));
  EXPECT_EQ(again.status, 304);
  EXPECT_EQ(tag(again), tag(page));
  EXPECT_THAT(again.body, IsEmpty());
  EXPECT_THAT(again.head, Not(HasSubstr("Content-Length")));
  EXPECT_EQ(get("/", "If-None-Match: \"other\"\r\n").status, 200);
}

TEST_F(DashboardTest, its_files_are_small) {
  size_t bytes = 0;
  for (const std::string& path : {std::string{"/"}, "/" + link("src"), "/" + link("stylesheet\" href")}) {
    const Answer file = get(path, "Accept-Encoding: gzip\r\n");
    ASSERT_EQ(file.status, 200) << path;
    bytes += file.body.size();
  }
  EXPECT_THAT(bytes, testing::AllOf(testing::Gt(20U << 10), testing::Lt(150U << 10)));
}

TEST_F(DashboardTest, a_page_of_another_site_may_link_to_it_and_to_nothing_else) {
  const std::string_view linked = "Sec-Fetch-Site: cross-site\r\n";
  EXPECT_EQ(get("/", linked).status, 200);
  EXPECT_EQ(get("/v1/stats", linked).status, 403);
}

TEST_F(DashboardTest, it_needs_no_token_and_shows_nothing_without) {
  host.front->set_tokens({Token{"ops", api::hash_secret("secret"), only(Scope::kRead), {"*"}}});
  EXPECT_EQ(get("/").status, 200);
  EXPECT_EQ(get("/v1/stats").status, 401);
}

TEST_F(DashboardTest, other_methods_and_other_paths_are_not_its_own) {
  EXPECT_EQ(ask("POST", "/").status, 405);
  EXPECT_EQ(get("/ui/a/b").status, 404);
  host.dialects.clear();
  EXPECT_EQ(get("/").status, 404) << "server.dashboard = false";
}

TEST(Unpack, takes_apart_what_the_build_wrote) {
  const auto files = unpack("a.js 3 t1 text/javascript; charset=utf-8\nindex.html 2 t2 text/html\n\nabcde");
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->size(), 2U);
  EXPECT_EQ((*files)[0].type, "text/javascript; charset=utf-8");
  EXPECT_EQ((*files)[0].gzipped, "abc");
  EXPECT_EQ((*files)[1].name, "index.html");
  EXPECT_EQ((*files)[1].tag, "t2");
  EXPECT_EQ((*files)[1].gzipped, "de");
  EXPECT_FALSE(unpack("a.js 3 t text/plain\n\nab").ok());
  EXPECT_FALSE(unpack("a.js x t text/plain\n\nab").ok());
  EXPECT_FALSE(unpack("a.js\n\n").ok());
}

}  // namespace
}  // namespace delayq::http
