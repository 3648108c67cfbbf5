#include "net/http_reader.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>
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
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n"), 413);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" +
                      std::string(101, 'x') + "\r\n"),
            413);
  EXPECT_EQ(status_of("hello\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n"), 400);
  EXPECT_EQ(status_of(std::string("\0\1\2\r\n\r\n", 7)), 400);
}

TEST(HttpReader, keep_alive_and_expectations) {
  std::string_view old = "GET / HTTP/1.0\r\n\r\n";
  HttpReader reader;
  ASSERT_EQ(read_on(reader, old), Outcome::kRequest);
  EXPECT_FALSE(reader.request().keep_alive);
  std::string_view asks = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n\r\n";
  ASSERT_EQ(reader.read(asks), Outcome::kHead);
  EXPECT_TRUE(reader.expects_to_be_asked());
  ASSERT_EQ(reader.read(asks), Outcome::kPartial);
  std::string_view body = "ab";
  ASSERT_EQ(read_on(reader, body), Outcome::kRequest);
  EXPECT_EQ(reader.request().body, "ab");
}

TEST(HttpReader, the_head_comes_before_the_body) {
  const std::string head =
      "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nAuthorization: Bearer x\r\n\r\n";
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
  const std::string head = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n";
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
  const std::string last = piece + "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
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
      "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nGET "
      "/b "
      "HTTP/1.1\r\nHost: a\r\n\r\n";
  std::string_view input = both;
  ASSERT_EQ(reader.read(input), Outcome::kHead);
  reader.set_body(HttpReader::Body::kDropped);
  ASSERT_EQ(reader.read(input), Outcome::kRequest);
  EXPECT_EQ(reader.request().body, "");
  ASSERT_EQ(read_on(reader, input), Outcome::kRequest);
  EXPECT_EQ(reader.request().target, "/b");
}

/// What comes of a request that is sent piece by piece, each as long as it pleases, without end.
class EndlessTest : public testing::Test {
 protected:
  /// The status that ends it; 0 when a megabyte was read and it still goes on.
  int send_without_end(std::string_view begin, std::string_view unit, size_t at_once,
                       HttpReader::Body body = HttpReader::Body::kWhole) {
    HttpLimits limits;
    limits.header_bytes = 1000;
    limits.body_bytes = 100'000;
    limits.dropped_bytes = 1000;
    limits.chunk_line_bytes = 100;
    limits.extension_bytes = 500;
    HttpReader reader(limits);
    std::string kept(begin);
    std::string piece;
    while (piece.size() < at_once) piece += unit;
    for (size_t sent = 0; sent < 1'000'000; sent += piece.size()) {
      kept += piece;
      std::string_view rest = kept;
      Outcome outcome = Outcome::kHead;
      while (outcome == Outcome::kHead || outcome == Outcome::kBody) {
        outcome = reader.read(rest);
        if (outcome == Outcome::kHead) reader.set_body(body);
      }
      if (outcome == Outcome::kBroken) {
        error = reader.error();
        return reader.status();
      }
      kept.erase(0, kept.size() - rest.size());
      most_kept = std::max(most_kept, kept.size());
    }
    return 0;
  }

  static constexpr std::string_view kChunks =
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string error;
  size_t most_kept = 0;
};

TEST_F(EndlessTest, every_part_has_a_bound_and_the_error_names_it) {
  struct Case {
    std::string begin;
    std::string_view unit;
    int status;
    std::string_view error;
  };
  const std::string chunks(kChunks);
  const std::string last = chunks + "2\r\nab\r\n0\r\n";
  const std::vector<Case> cases{
      {"G", "G", 431, "the header has more than 1000 bytes"},
      {"GET /", "a", 431, "the header has more than 1000 bytes"},
      {"GET / HTTP/1.1\r\nX: ", "x", 431, "the header has more than 1000 bytes"},
      {"GET / HTTP/1.1\r\n", "X: x\r\n", 431, "the header has more than 1000 bytes"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n", "x", 413,
       "the request's body has more than 100000 bytes"},
      {chunks + "ffffffff\r\n", "x", 413, "the request's body has more than 100000 bytes"},
      {chunks, "1\r\nx\r\n", 413, "the request's body has more than 100000 bytes"},
      {chunks + "5;a=", "b", 400, "a chunk's size and extension have more than 100 bytes"},
      {chunks + "5", ";a=b", 400, "a chunk's size and extension have more than 100 bytes"},
      {chunks + "5;a=\"", "b", 400, "a chunk's size and extension have more than 100 bytes"},
      {chunks + "1\r\nx\r\n5;a=", "b", 400, "a chunk's size and extension have more than 100 bytes"},
      {chunks + "0;a=", "b", 400, "a chunk's size and extension have more than 100 bytes"},
      {chunks, "1;abcdef=ghijkl\r\nx\r\n", 400, "the chunk extensions have more than 500 bytes"},
      {last + "X: ", "x", 431, "the trailer has more than 1000 bytes"},
      {last, "X: x\r\n", 431, "the trailer has more than 1000 bytes"},
  };
  for (const Case& each : cases) {
    for (const size_t at_once : {1U, 7U, 100U}) {
      EXPECT_EQ(send_without_end(each.begin, each.unit, at_once), each.status) << each.begin << each.unit;
      EXPECT_EQ(error, each.error) << each.begin << each.unit;
      EXPECT_LE(most_kept, 2000U) << each.begin << each.unit;
    }
  }
}

TEST_F(EndlessTest, what_is_dropped_is_not_read_for_ever) {
  EXPECT_EQ(send_without_end(kChunks, "1\r\nx\r\n", 100, HttpReader::Body::kDropped), 413);
  EXPECT_EQ(error, "the request's body has more than 1000 bytes");
}

TEST_F(EndlessTest, what_comes_in_pieces_may_go_on) {
  EXPECT_EQ(send_without_end(kChunks, "4;a=b\r\nabcd\r\n", 100, HttpReader::Body::kPieces), 0) << error;
}

TEST(HttpReader, a_request_whose_end_is_in_doubt_is_refused) {
  const auto refusal = [](std::string_view fields, std::string_view version = "1.1") {
    const std::string text = fmt::format("POST / HTTP/{}\r\n{}\r\n", version, fields);
    std::string_view input = text;
    HttpReader reader;
    return reader.read(input) == Outcome::kBroken ? reader.status() : 0;
  };
  EXPECT_EQ(refusal("Host: a\r\nTransfer-Encoding: Chunked \r\n"), 0);
  for (const std::string_view coding : {"xchunked", "gzip", "identity", "chunked, gzip", "chunked, identity",
                                        "\"chunked\"", "chunked;q=1", ""}) {
    EXPECT_EQ(refusal(fmt::format("Host: a\r\nTransfer-Encoding: {}\r\n", coding)), 400) << coding;
  }
  EXPECT_EQ(refusal("Host: a\r\nTransfer-Encoding: gzip, chunked\r\n"), 501);
  for (const std::string_view first : {"chunked", "identity"}) {
    for (const std::string_view second : {"chunked", "identity"}) {
      EXPECT_EQ(refusal(fmt::format("Host: a\r\nTransfer-Encoding: {}\r\nTransfer-Encoding: {}\r\n", first,
                                    second)),
                400);
    }
    EXPECT_EQ(refusal(fmt::format("Host: a\r\nTransfer-Encoding: {}\r\nContent-Length: 2\r\n", first)), 400);
    EXPECT_EQ(refusal(fmt::format("Host: a\r\nContent-Length: 2\r\nTransfer-Encoding: {}\r\n", first)), 400);
  }
  EXPECT_EQ(refusal("Host: a\r\nTransfer-Encoding: chunked\r\n", "1.0"), 400);
  EXPECT_EQ(refusal("Host: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n"), 400);
  EXPECT_EQ(refusal("Host: a\r\nContent-Length: 2\r\nContent-Length: 2\r\n"), 400);
  for (const std::string_view length : {"10, 10", "10,10", "+10", "0x10", "10;", ""})
    EXPECT_EQ(refusal(fmt::format("Host: a\r\nContent-Length: {}\r\n", length)), 400) << length;
  EXPECT_EQ(refusal("Host: a\r\nContent-Length: 10 \r\n"), 0);
}

TEST(HttpReader, a_field_that_goes_on_in_the_next_line_is_refused) {
  for (const std::string_view fields :
       {"Host: a\r\nX: 1\r\n 2\r\n", "Host: a\r\nX: 1\r\n\t2\r\n", "Host:\r\n a\r\n", " X: 1\r\nHost: a\r\n",
        "Host: a\r\nX: 1\r\n \r\n"}) {
    const std::string text = fmt::format("GET / HTTP/1.1\r\n{}\r\n", fields);
    for (size_t piece = 1; piece <= text.size(); ++piece) {
      HttpReader reader;
      Outcome outcome = Outcome::kPartial;
      std::string_view left;
      for (size_t end = piece; outcome == Outcome::kPartial; end = std::min(end + piece, text.size())) {
        left = std::string_view(text).substr(0, end).substr(
            left.data() == nullptr ? 0 : left.data() - text.data());
        outcome = reader.read(left);
        if (end == text.size()) break;
      }
      EXPECT_EQ(outcome, Outcome::kBroken) << fields << " in pieces of " << piece;
      EXPECT_EQ(reader.status(), 400);
    }
  }
}

TEST(HttpReader, a_host_without_a_name_is_refused) {
  for (const std::string_view text : {"GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET / HTTP/1.1\r\nHost:  \r\n\r\n",
                                      "GET / HTTP/1.0\r\nHost: \r\n\r\n"}) {
    std::string_view input = text;
    HttpReader reader;
    EXPECT_EQ(reader.read(input), Outcome::kBroken) << text;
    EXPECT_EQ(reader.status(), 400);
    EXPECT_EQ(reader.error(), "Host: has no name in it");
  }
}

TEST(HttpReader, a_field_of_which_one_value_counts_is_there_once) {
  const auto refusal = [](std::string_view fields, std::string_view version = "1.1") {
    const std::string text = fmt::format("GET / HTTP/{}\r\n{}\r\n", version, fields);
    std::string_view input = text;
    HttpReader reader;
    return reader.read(input) == Outcome::kBroken ? reader.error() : "";
  };
  EXPECT_EQ(refusal("Host: a\r\n"), "");
  EXPECT_EQ(refusal(""), "Host: is missing; HTTP/1.1 needs it");
  EXPECT_EQ(refusal("", "1.0"), "");
  EXPECT_EQ(refusal("Host: a\r\nhost: a\r\n"), "Host: is there more than once");
  EXPECT_EQ(refusal("Host: a\r\nhost: b\r\n", "1.0"), "Host: is there more than once");
  EXPECT_EQ(refusal("Host: a\r\nOrigin: http://a\r\nOrigin: http://b\r\n"),
            "Origin: is there more than once");
  EXPECT_EQ(refusal("Host: a\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n"),
            "Authorization: is there more than once");
  EXPECT_EQ(refusal("Host: a\r\nIdempotency-Key: a\r\nidempotency-KEY: a\r\n"),
            "Idempotency-Key: is there more than once");
  EXPECT_EQ(refusal("Host: a\r\nContent-Type: a\r\nCONTENT-type: a\r\n"),
            "Content-Type: is there more than once");
}

TEST(HttpReader, a_broken_request_is_not_taken_for_the_one_before) {
  const std::string text = "HEAD /a HTTP/1.1\r\nHost: a\r\n\r\nGARBAGE\x01\r\n\r\n";
  std::string_view input = text;
  HttpReader reader;
  ASSERT_EQ(read_on(reader, input), Outcome::kRequest);
  EXPECT_EQ(reader.request().method, "HEAD");
  ASSERT_EQ(reader.read(input), Outcome::kBroken);
  EXPECT_EQ(reader.request().method, "");
  EXPECT_EQ(reader.request().target, "");
}

}  // namespace
}  // namespace delayq::net
