// Answers that are compressed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/http_client.h"

namespace delayq::http {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

using Answer = HttpClient::Answer;

class CompressionTest : public testing::Test, public HttpClient {};

TEST_F(CompressionTest, large_answers_are_compressed_for_those_who_ask_for_it) {
  for (int i = 0; i < 100; ++i) ask("POST", "/v1/topics/t/jobs", R"({"body":1,"delay":"1h"})");
  const std::string list = "/v1/topics/t/jobs?state=delayed";
  const Answer plain = ask("GET", list);
  const Answer packed = ask("GET", list, "", "text/plain", "Accept-Encoding: br, gzip;q=0.8\r\n");
  EXPECT_THAT(plain.head, Not(HasSubstr("Content-Encoding")));
  EXPECT_THAT(packed.head, AllOf(HasSubstr("Content-Encoding: gzip"), HasSubstr("Vary: Accept-Encoding")));
  EXPECT_LT(packed.body.size(), plain.body.size() / 4);
  EXPECT_TRUE(packed.body.starts_with("\x1f\x8b"));
  EXPECT_THAT(ask("GET", "/healthz", "", "text/plain", "Accept-Encoding: gzip\r\n").head,
              Not(HasSubstr("Content-Encoding")))
      << "it is small";
}

TEST_F(CompressionTest, very_large_answers_are_not_because_all_others_would_wait) {
  const std::string body(size_t{600} << 10, 'x');
  const std::string list = "/v1/topics/t/jobs?state=ready&bodies=true";
  const auto head = [&] { return ask("GET", list, "", "text/plain", "Accept-Encoding: gzip\r\n").head; };
  ask("POST", "/v1/topics/t/jobs", body, "text/plain");
  EXPECT_THAT(head(), HasSubstr("Content-Encoding: gzip"));
  ask("POST", "/v1/topics/t/jobs", body, "text/plain");
  EXPECT_THAT(head(), Not(HasSubstr("Content-Encoding")));
}

TEST(AcceptEncoding, gzip_may_be_refused_by_name) {
  EXPECT_TRUE(accepts_gzip("gzip"));
  EXPECT_TRUE(accepts_gzip("deflate, gzip ;q=1.0, *;q=0.5"));
  EXPECT_FALSE(accepts_gzip("gzip;q=0"));
  EXPECT_FALSE(accepts_gzip("gzip; q=0.000"));
  EXPECT_FALSE(accepts_gzip("gzipped, br"));
  EXPECT_FALSE(accepts_gzip(""));
}

}  // namespace
}  // namespace delayq::http
