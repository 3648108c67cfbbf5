#include "net/http_reader.h"

#include <gtest/gtest.h>

namespace delayq::net {
namespace {

using Outcome = HttpReader::Outcome;

constexpr std::string_view kPost =
    "POST /v1/pop?x=1 HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
constexpr std::string_view kChunked =
    "PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";

TEST(HttpReader, one_request_after_another) {
  const std::string both = std::string(kPost) + std::string(kChunked);
  std::string_view rest = both;
  HttpReader reader;
  ASSERT_EQ(reader.read(rest), Outcome::kRequest);
  EXPECT_EQ(reader.request().method, "POST");
  EXPECT_EQ(reader.request().target, "/v1/pop?x=1");
  EXPECT_EQ(reader.request().content_type, "application/json");
  EXPECT_EQ(reader.request().body, "{}");
  EXPECT_TRUE(reader.request().keep_alive);
  ASSERT_EQ(reader.read(rest), Outcome::kRequest);
  EXPECT_EQ(reader.request().body, "abcde");
  EXPECT_EQ(reader.request().content_type, "");
  EXPECT_EQ(reader.read(rest), Outcome::kPartial);
  EXPECT_TRUE(rest.empty());
}

TEST(HttpReader, input_may_be_cut_anywhere) {
  for (const std::string_view whole : {kPost, kChunked}) {
    for (size_t cut = 0; cut <= whole.size(); ++cut) {
      HttpReader reader;
      std::string input(whole.substr(0, cut));
      std::string_view rest = input;
      Outcome outcome = reader.read(rest);
      if (outcome != Outcome::kRequest) {
        ASSERT_EQ(outcome, Outcome::kPartial) << cut << reader.error();
        input = std::string(rest) + std::string(whole.substr(cut));
        rest = input;
        outcome = reader.read(rest);
      }
      ASSERT_EQ(outcome, Outcome::kRequest) << cut << reader.error();
      EXPECT_TRUE(reader.request().body == "{}" || reader.request().body == "abcde");
    }
  }
}

TEST(HttpReader, what_is_too_large_or_no_request_is_told) {
  const auto status_of = [](std::string_view input) {
    HttpLimits limits;
    limits.header_bytes = 1000;
    limits.body_bytes = 100;
    HttpReader reader(limits);
    return reader.read(input) == Outcome::kBroken ? reader.status() : 0;
  };
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nX: " + std::string(2000, 'x')), 431);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nX: " + std::string(2000, 'x') + "\r\n\r\n"), 431);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n"), 413);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" + std::string(101, 'x') +
                      "\r\n"),
            413);
  EXPECT_EQ(status_of("hello\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"), 400);
  EXPECT_EQ(status_of(std::string("\0\1\2\r\n\r\n", 7)), 400);
}

TEST(HttpReader, keep_alive_and_expectations) {
  std::string_view old = "GET / HTTP/1.0\r\n\r\n";
  HttpReader reader;
  ASSERT_EQ(reader.read(old), Outcome::kRequest);
  EXPECT_FALSE(reader.request().keep_alive);
  std::string_view asks = "POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
  ASSERT_EQ(reader.read(asks), Outcome::kPartial);
  EXPECT_TRUE(reader.take_expectation());
  EXPECT_FALSE(reader.take_expectation());
  std::string_view body = "ab";
  ASSERT_EQ(reader.read(body), Outcome::kRequest);
  EXPECT_EQ(reader.request().body, "ab");
}

}  // namespace
}  // namespace delayq::net
