#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/moment.h"
#include "json/reader.h"
#include "ops/access_log.h"

namespace delayq {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Served sample() {
  return {.at = from_unix_ms(1'700'000'000'000),
          .protocol = "http",
          .peer = "127.0.0.1:40312",
          .token = "shop",
          .verb = "POST",
          .target = "/v1/topics/order/jobs",
          .status = 201,
          .code = {},
          .bytes_in = 96,
          .bytes_out = 81,
          .took = 412us};
}

std::string text_of(const Served& served, Config::LogFormat format = Config::LogFormat::kText) {
  std::string out;
  append_served(out, served, format_moment(served.at), format);
  return out;
}

TEST(ServedText, a_line_for_people) {
  EXPECT_EQ(
      text_of(sample()),
      "2023-11-14T22:13:20.000Z http 127.0.0.1:40312 shop POST /v1/topics/order/jobs 201 - 96 81 412us\n");
}

TEST(ServedText, what_there_is_none_of_is_a_dash) {
  const Served served{.at = {}, .protocol = "resp", .peer = "[::1]:1", .verb = "PING", .code = "overloaded"};
  EXPECT_EQ(text_of(served), "1970-01-01T00:00:00.000Z resp [::1]:1 - PING - 0 overloaded 0 0 0us\n");
}

TEST(ServedText, a_line_for_programs) {
  EXPECT_EQ(
      text_of(sample(), Config::LogFormat::kJson),
      R"({"time":"2023-11-14T22:13:20.000Z","protocol":"http","peer":"127.0.0.1:40312","token":"shop",)"
      R"("verb":"POST","target":"/v1/topics/order/jobs","status":201,"bytes_in":96,"bytes_out":81,"took_us":412})"
      "\n");
}

TEST(ServedText, no_client_breaks_out_of_its_line) {
  Served served = sample();
  served.target = "/a b\n2023 forged\x1b[31m\\";
  EXPECT_THAT(text_of(served), HasSubstr(R"( /a\x20b\x0a2023\x20forged\x1b[31m\x5c 201 )"));
  served.target = "t\xff";
  EXPECT_THAT(text_of(served), HasSubstr(R"( t\xff 201)"));
  served.target =
      "\xc2\x9b"
      "31m";
  EXPECT_THAT(text_of(served), HasSubstr(R"( \xc2\x9b31m 201)"));
  served.target = "größe";
  EXPECT_THAT(text_of(served), HasSubstr(" größe 201"));
  for (const std::string_view hostile : {"a\nb", "\"},{\"", "\xff\xfe", "\x01\x7f"}) {
    served.target = hostile;
    const std::string line = text_of(served, Config::LogFormat::kJson);
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
    EXPECT_TRUE(json::parse(line.substr(0, line.size() - 1)).ok()) << line;
  }
}

TEST(ServedText, a_target_has_a_bound) {
  const std::string target(100'000, 'x');
  Served served = sample();
  served.target = target;
  EXPECT_LT(text_of(served).size(), 2'000U);
  EXPECT_LT(text_of(served, Config::LogFormat::kJson).size(), 2'000U);
  EXPECT_LT(slow_warning(served, 0ms).size(), 2'000U);
}

TEST(ServedText, what_is_slow) {
  Served served = sample();
  served.took = 1s;
  EXPECT_EQ(slow_warning(served, 1s), "");
  served.took = 1s + 1us;
  EXPECT_EQ(slow_warning(served, 1s),
            "slow request: http 127.0.0.1:40312 shop POST /v1/topics/order/jobs took 1000ms");
  EXPECT_EQ(slow_warning(served, 0ms), "") << "switched off";
  served.may_wait = true;
  EXPECT_EQ(slow_warning(served, 1s), "") << "it was asked to take its time";
}

}  // namespace
}  // namespace delayq
