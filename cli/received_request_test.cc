#include <gtest/gtest.h>

#include "cli/receiver.h"

namespace delayq::cli {
namespace {

Reading read(std::string_view bytes) {
  ReceivedRequest request;
  return read_request(bytes, request);
}

TEST(ReceivedRequest, IsReadOffTheFront) {
  std::string_view input =
      "POST /a?b=c HTTP/1.1\r\nHost: x\r\nwebhook-ID:  7 \r\nContent-Length: 3\r\n\r\nabcGET / "
      "HTTP/1.1\r\n\r\nrest";
  ReceivedRequest request;
  ASSERT_EQ(read_request(input, request), Reading::kWhole);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/a?b=c");
  EXPECT_EQ(request.header("Webhook-Id"), "7");
  EXPECT_EQ(request.header("nothing"), "");
  EXPECT_EQ(request.body, "abc");
  EXPECT_TRUE(request.keeps_alive);
  ASSERT_EQ(read_request(input, request), Reading::kWhole);
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.header("host"), "") << "that was the one before";
  EXPECT_EQ(request.body, "");
  EXPECT_EQ(input, "rest");
}

TEST(ReceivedRequest, WaitsForAllOfIt) {
  for (const std::string_view whole : {"PUT / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabcde",
                                       "PUT / HTTP/1.1\r\nTransfer-Encoding: "
                                       "chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: 1\r\n\r\n"}) {
    for (size_t length = 0; length < whole.size(); ++length) {
      EXPECT_EQ(read(whole.substr(0, length)), Reading::kPartial) << whole.substr(0, length);
    }
    std::string_view input = whole;
    ReceivedRequest request;
    ASSERT_EQ(read_request(input, request), Reading::kWhole);
    EXPECT_EQ(request.body, "abcde");
    EXPECT_EQ(input, "");
  }
}

TEST(ReceivedRequest, KnowsWhoWaitsToBeAsked) {
  EXPECT_EQ(read("PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"),
            Reading::kAsksToContinue);
  EXPECT_EQ(read("PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nab"), Reading::kPartial);
}

TEST(ReceivedRequest, KnowsWhoStays) {
  const std::pair<std::string_view, bool> rows[] = {
      {"GET / HTTP/1.1\r\n\r\n", true},
      {"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n", false},
      {"GET / HTTP/1.0\r\n\r\n", false},
      {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true},
  };
  for (const auto& [text, keeps_alive] : rows) {
    std::string_view input = text;
    ReceivedRequest request;
    ASSERT_EQ(read_request(input, request), Reading::kWhole) << text;
    EXPECT_EQ(request.keeps_alive, keeps_alive) << text;
  }
}

TEST(ReceivedRequest, RefusesWhatIsNone) {
  for (const std::string_view bytes : {
           "hello\r\n\r\n",
           "\r\n\r\n",
           "GET /\r\n\r\n",
           "GET  HTTP/1.1\r\n\r\n",
           "GET / HTTP/2\r\n\r\n",
           "GET / HTTP/1.1\r\nno colon\r\n\r\n",
           "GET / HTTP/1.1\r\n: no name\r\n\r\n",
           "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
           "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
           "GET / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
           "GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
           "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
           "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\n",
           "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
       }) {
    EXPECT_EQ(read(bytes), Reading::kBroken) << bytes;
  }
  EXPECT_EQ(read(std::string(70'000, 'x')), Reading::kBroken) << "a header without end";
}

TEST(ReceivedRequest, HasBoundsHoweverItComes) {
  ReceivedRequest request;
  const std::string long_header = "GET / HTTP/1.1\r\nX: " + std::string(70'000, 'x');
  for (const std::string& text : {long_header, long_header + "\r\n\r\n"}) {
    std::string_view input = text;
    EXPECT_EQ(read_request(input, request), Reading::kBroken);
  }
  const std::string endless =
      "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(140 << 20, '0');
  std::string_view input = endless;
  EXPECT_EQ(read_request(input, request), Reading::kBroken) << "a line of a chunk that never ends";
}

}  // namespace
}  // namespace delayq::cli
