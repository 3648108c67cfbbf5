#include "core/limits.h"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace delayq {
namespace {

std::string detail(const Status& status) { return status ? "ok" : status.error().detail; }

bool topic_ok(std::string_view topic) { return check_topic(topic).ok(); }

TEST(Limits, topic_takes_the_ascii_of_the_rule_and_no_other) {
  const std::string allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-";
  for (int c = 0; c < 128; ++c) {
    const std::string topic{'a', static_cast<char>(c), 'z'};
    EXPECT_EQ(topic_ok(topic), allowed.find(static_cast<char>(c)) != std::string::npos) << c;
  }
}

TEST(Limits, topic_takes_letters_of_other_scripts) {
  EXPECT_TRUE(topic_ok("\xe8\xae\xa2\xe5\x8d\x95.\xe8\xb6\x85\xe6\x97\xb6"));  // Chinese
  EXPECT_TRUE(
      topic_ok("bestellung-\xc3\xbc"
               "berf\xc3\xa4llig"));
  EXPECT_TRUE(topic_ok("\xd0\xb7\xd0\xb0\xd0\xba\xd0\xb0\xd0\xb7"));
  for (std::string_view refused :
       {"\xc2\x85", "\xc2\xa0", "\xe2\x80\xa8", "\xe3\x80\x80", "\xef\xbb\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xff", "\xc3", "\xed\xa0\x80", "\xc0\xae"}) {
    EXPECT_FALSE(topic_ok("a" + std::string(refused) + "b")) << testing::PrintToString(refused);
    EXPECT_FALSE(topic_ok(refused)) << testing::PrintToString(refused);
  }
}

TEST(Limits, topic_has_1_to_200_bytes) {
  EXPECT_EQ(detail(check_topic("")), "topic is empty: it needs 1 to 200 bytes");
  EXPECT_TRUE(topic_ok("a"));
  EXPECT_TRUE(topic_ok(std::string(200, 'a')));
  EXPECT_EQ(detail(check_topic(std::string(201, 'a'))),
            "topic \"" + std::string(60, 'a') + "...\" has 201 bytes: at most 200 are allowed");
  EXPECT_EQ(detail(check_topic("a b")),
            R"(topic "a b" has a character that is not allowed: use letters, digits and _ . : -)");
}

TEST(Limits, id_and_group_are_printable_utf8) {
  for (const auto& [field, check] :
       std::vector<std::pair<std::string, std::function<Status(std::string_view)>>>{{"id", check_id},
                                                                                    {"group", check_group}}) {
    EXPECT_EQ(detail(check("order/1 (first) #\xc3\xa9")), "ok");
    EXPECT_EQ(detail(check(std::string(255, 'x'))), "ok");
    EXPECT_EQ(detail(check("")), field + " is empty: it needs 1 to 255 bytes");
    EXPECT_EQ(detail(check(std::string(256, 'x'))),
              field + " \"" + std::string(60, 'x') + "...\" has 256 bytes: at most 255 are allowed");
    EXPECT_EQ(detail(check("a\nb")), field + R"( "a\x0ab" must be UTF-8 without control characters)");
    for (std::string_view refused : {"\x7f", "\xc2\x9f", "\xff", "a\xc3"}) {
      EXPECT_FALSE(check(refused).ok()) << testing::PrintToString(refused);
    }
    EXPECT_FALSE(check(std::string_view("a\0", 2)).ok());
  }
}

TEST(Limits, reason_may_be_empty_and_have_lines) {
  EXPECT_EQ(detail(check_reason("")), "ok");
  EXPECT_EQ(detail(check_reason("Traceback:\n\tline 1")), "ok");
  EXPECT_EQ(detail(check_reason(std::string(1'024, 'x'))), "ok");
  EXPECT_EQ(detail(check_reason(std::string(1'025, 'x'))),
            "reason \"" + std::string(60, 'x') + "...\" has 1025 bytes: at most 1024 are allowed");
  for (std::string_view refused : {"\r", "\x1b[31m", "\xff"}) EXPECT_FALSE(check_reason(refused).ok());
}

TEST(Limits, body_is_only_bounded) {
  EXPECT_EQ(detail(check_body(0, 10)), "ok");
  EXPECT_EQ(detail(check_body(10, 10)), "ok");
  const Status status = check_body(11, 10);
  EXPECT_EQ(detail(status), "body has 11 bytes: at most 10 are allowed");
  EXPECT_EQ(status.error().code, ErrorCode::kTooLarge);
}

TEST(Limits, numbers_have_ranges) {
  EXPECT_EQ(detail(check_priority(0)), "ok");
  EXPECT_EQ(detail(check_priority(4'294'967'295)), "ok");
  EXPECT_EQ(detail(check_priority(4'294'967'296)),
            "priority 4294967296 is out of range: 0 (first) to 4294967295 is allowed");
  EXPECT_EQ(detail(check_attempts(0)), "ok");
  EXPECT_EQ(detail(check_attempts(1'000'000)), "ok");
  EXPECT_EQ(detail(check_attempts(1'000'001)),
            "attempts 1000001 is out of range: 1 to 1000000 is allowed, or 0 for no limit");
  EXPECT_EQ(detail(check_count("count", 1, 10)), "ok");
  EXPECT_EQ(detail(check_count("count", 10, 10)), "ok");
  EXPECT_EQ(detail(check_count("count", 0, 10)), "count 0 is out of range: 1 to 10 is allowed");
  EXPECT_EQ(detail(check_count("bins", 11, 10)), "bins 11 is out of range: 1 to 10 is allowed");
}

TEST(Limits, times_have_ranges) {
  using std::chrono::days;
  EXPECT_EQ(detail(check_delay(Millis{0})), "ok");
  EXPECT_EQ(detail(check_delay(days{36'525})), "ok");
  EXPECT_EQ(detail(check_delay(days{36'525} + Millis{1})),
            "delay 36525d0.001s is out of range: 0s to 36525d is allowed");
  EXPECT_EQ(detail(check_delay(Millis{-1})), "delay -1ms is out of range: 0s to 36525d is allowed");
  EXPECT_EQ(detail(check_lease(Millis{100})), "ok");
  EXPECT_EQ(detail(check_lease(std::chrono::hours{24})), "ok");
  EXPECT_EQ(detail(check_lease(Millis{99})), "lease 99ms is out of range: 100ms to 1d is allowed");
  EXPECT_FALSE(check_lease(std::chrono::hours{24} + Millis{1}).ok());
  EXPECT_EQ(detail(check_wait(Millis{0})), "ok");
  EXPECT_EQ(detail(check_wait(std::chrono::hours{1})), "ok");
  EXPECT_EQ(detail(check_wait(std::chrono::hours{2})), "wait 2h is out of range: 0s to 1h is allowed");
}

TEST(Limits, a_due_time_may_be_past_but_not_beyond_100_years) {
  const Moment now = from_unix_ms(1'700'000'000'000);
  EXPECT_EQ(detail(check_due(now, from_unix_ms(0))), "ok");
  EXPECT_EQ(detail(check_due(now, now + Limits::kMaxDelay)), "ok");
  EXPECT_EQ(
      detail(check_due(now, now + Limits::kMaxDelay + Millis{1})),
      "at 2123-11-15T22:13:20.001Z is too far away: at most 36525d from now, until 2123-11-15T22:13:20.000Z, "
      "is allowed");
  EXPECT_EQ(detail(check_due(kNever, kNever)), "ok") << "no overflow";
}

TEST(Limits, defaults_are_within_what_can_be_configured) {
  const Limits limits;
  EXPECT_EQ(limits.body_bytes, size_t{1} << 20);
  EXPECT_LE(limits.body_bytes, Limits::kMaxBodyBytes);
}

RC_GTEST_PROP(Limits, a_good_topic_is_a_good_id, (const std::string& text)) {
  if (check_topic(text).ok()) RC_ASSERT(check_id(text).ok());
  if (check_id(text).ok()) RC_ASSERT(check_reason(text).ok());
}

}  // namespace
}  // namespace delayq
