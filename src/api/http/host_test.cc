// By which names a server without tokens may be asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http_client.h"
#include "tests/support/tokens.h"

namespace delayq::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Answer = HttpClient::Answer;

class HostTest : public testing::Test, public HttpClient {
 protected:
  HostTest() { host.names = HostNames({"delayq.example.com"}); }

  /// `headers` are further ones, each with its line's end.
  Answer ask_at(std::string_view name, std::string_view headers = {}, std::string_view method = "GET",
                std::string_view target = "/v1/topics") {
    return parse(say(fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n{}\r\n", method, target,
                                 name, headers)));
  }
};

TEST_F(HostTest, a_page_whose_name_points_here_is_not_served) {
  for (const std::string_view name :
       {"evil.example", "evil.example:9277", "delayq.example.com.evil.example"}) {
    EXPECT_EQ(ask_at(name).status, 403) << "a GET of a page to its own place has no Origin";
    const std::string origin = fmt::format("Origin: http://{}\r\n", name);
    EXPECT_EQ(ask_at(name, origin, "POST", "/v1/topics/t/pop").status, 403) << name;
    EXPECT_EQ(ask_at(name, origin, "DELETE", "/v1/topics/t").status, 403) << name;
    EXPECT_EQ(ask_at(name, origin, "GET", "/healthz").status, 403) << name;
  }
  EXPECT_THAT(ask_at("Evil.example").body,
              AllOf(HasSubstr(R"("code":"forbidden")"), HasSubstr(R"(Host: \"Evil.example\" is not a name)"),
                    HasSubstr("server.hosts"), HasSubstr(R"("field":"Host")")));
}

TEST_F(HostTest, who_means_this_server_is) {
  for (const std::string_view name : {"localhost", "LocalHost:9277", "127.0.0.1:9277", "[::1]:9277",
                                      "192.168.0.7", "delayq.example.com", "DELAYQ.example.com:80"}) {
    EXPECT_EQ(ask_at(name).status, 200) << name;
    EXPECT_EQ(ask_at(name, fmt::format("Origin: http://{}\r\n", name)).status, 200) << name;
  }
  EXPECT_EQ(ask_at("LOCALHOST:9277", "Origin: http://localhost:9277\r\n").status, 200);
  EXPECT_EQ(parse(say("GET /v1/topics HTTP/1.0\r\n\r\n")).status, 200) << "no browser is as old as that";
}

TEST_F(HostTest, whether_it_is_well_may_be_asked_by_any_name) {
  EXPECT_EQ(ask_at("pool.internal:9277", "", "GET", "/healthz").status, 200);
  EXPECT_EQ(ask_at("pool.internal:9277", "", "GET", "/readyz").status, 200);
  EXPECT_EQ(ask_at("pool.internal:9277", "", "GET", "/metrics").status, 403);
}

TEST_F(HostTest, who_has_a_token_may_call_it_what_he_likes) {
  host.front->set_tokens({support::token("shop", support::kSecretHash, only(Scope::kRead))});
  EXPECT_EQ(ask_at("any.example").status, 401) << "a page has none";
  EXPECT_EQ(ask_at("any.example", "Authorization: Bearer secret\r\n").status, 200);
}

TEST_F(HostTest, an_image_on_a_page_is_a_request_of_that_page) {
  for (const std::string_view site : {"cross-site", "same-site"}) {
    EXPECT_EQ(ask_at("127.0.0.1:9277", fmt::format("Sec-Fetch-Site: {}\r\n", site)).status, 403) << site;
  }
  for (const std::string_view site : {"same-origin", "none"}) {
    EXPECT_EQ(ask_at("127.0.0.1:9277", fmt::format("Sec-Fetch-Site: {}\r\n", site)).status, 200) << site;
  }
}

}  // namespace
}  // namespace delayq::http
