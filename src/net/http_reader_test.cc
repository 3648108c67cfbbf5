#include "net/http_reader.h"

#include <gtest/gtest.h>

namespace delayq::net {
namespace {

using Outcome = HttpReader::Outcome;

constexpr std::string_view kPost =
    "POST /v1/pop?x=1 HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
constexpr std::string_view kChunked =
    "PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";

/// Goes on over heads, for those who want the whole request.
Outcome read_on(HttpReader& reader, std::string_view& input) {
  const Outcome outcome = reader.read(input);
  return outcome == Outcome::kHead ? reader.read(input) : outcome;
}

TEST(HttpReader, one_request_after_another) {
  const std::string both = std::string(kPost) + std::string(kChunked);
  std::string_view rest = both;
  HttpReader reader;
  ASSERT_EQ(read_on(reader, rest), Outcome::kRequest);
  EXPECT_EQ(reader.request().method, "POST");
  EXPECT_EQ(reader.request().target, "/v1/pop?x=1");
  EXPECT_EQ(reader.request().content_type, "application/json");
  EXPECT_EQ(reader.request().body, "{}");
  EXPECT_TRUE(reader.request().keep_alive);
  ASSERT_EQ(read_on(reader, rest), Outcome::kRequest);
  EXPECT_EQ(reader.request().body, "abcde");
  EXPECT_EQ(reader.request().content_type, "");
  EXPECT_EQ(read_on(reader, rest), Outcome::kPartial);
  EXPECT_TRUE(rest.empty());
}

TEST(HttpReader, input_may_be_cut_anywhere) {
  for (const std::string_view whole : {kPost, kChunked}) {
    for (size_t cut = 0; cut <= whole.size(); ++cut) {
      HttpReader reader;
      std::string input(whole.substr(0, cut));
      std::string_view rest = input;
      Outcome outcome = read_on(reader, rest);
      if (outcome != Outcome::kRequest) {
        ASSERT_EQ(outcome, Outcome::kPartial) << cut << reader.error();
        input = std::string(rest) + std::string(whole.substr(cut));
        rest = input;
        outcome = read_on(reader, rest);
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
    return read_on(reader, input) == Outcome::kBroken ? reader.status() : 0;
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
  ASSERT_EQ(read_on(reader, old), Outcome::kRequest);
  EXPECT_FALSE(reader.request().keep_alive);
  std::string_view asks = "POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
  ASSERT_EQ(reader.read(asks), Outcome::kHead);
  EXPECT_TRUE(reader.expects_to_be_asked());
  ASSERT_EQ(reader.read(asks), Outcome::kPartial);
  std::string_view body = "ab";
  ASSERT_EQ(read_on(reader, body), Outcome::kRequest);
  EXPECT_EQ(reader.request().body, "ab");
}

TEST(HttpReader, the_head_comes_before_the_body) {
  const std::string head = "POST /a HTTP/1.1\r\nContent-Length: 5\r\nAuthorization: Bearer x\r\n\r\n";
  HttpReader reader;
  std::string_view input = head;
  EXPECT_FALSE(reader.is_amid_request());
  ASSERT_EQ(reader.read(input), Outcome::kHead);
  EXPECT_EQ(reader.request().target, "/a");
  EXPECT_EQ(reader.request().authorization, "Bearer x");
  EXPECT_EQ(reader.request().content_length, 5u);
  EXPECT_TRUE(reader.is_amid_request());
  EXPECT_EQ(reader.read(input), Outcome::kPartial);
}

TEST(HttpReader, a_body_in_pieces_has_no_bound) {
  HttpLimits limits;
  limits.body_bytes = 10;
  HttpReader reader(limits);
  const std::string head = "POST /a HTTP/1.1\r\nContent-Length: 1000\r\n\r\n";
  std::string_view input = head;
  ASSERT_EQ(reader.read(input), Outcome::kHead);
  reader.set_body(HttpReader::Body::kPieces);
  std::string seen;
  const std::string piece(100, 'x');
  for (int i = 0; i < 9; ++i) {
    input = piece;
    ASSERT_EQ(reader.read(input), Outcome::kBody);
    seen += reader.request().body;
  }
  const std::string last = piece + "GET / HTTP/1.1\r\n\r\n";
  input = last;
  ASSERT_EQ(reader.read(input), Outcome::kRequest);
  seen += reader.request().body;
  EXPECT_EQ(seen, std::string(1000, 'x'));
  ASSERT_EQ(read_on(reader, input), Outcome::kRequest);
  EXPECT_EQ(reader.request().method, "GET");
}

TEST(HttpReader, a_body_that_is_dropped_is_passed_over) {
  HttpReader reader;
  const std::string both =
      "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET /b "
      "HTTP/1.1\r\n\r\n";
  std::string_view input = both;
  ASSERT_EQ(reader.read(input), Outcome::kHead);
  reader.set_body(HttpReader::Body::kDropped);
  ASSERT_EQ(reader.read(input), Outcome::kRequest);
  EXPECT_EQ(reader.request().body, "");
  ASSERT_EQ(read_on(reader, input), Outcome::kRequest);
  EXPECT_EQ(reader.request().target, "/b");
}

}  // namespace
}  // namespace delayq::net
