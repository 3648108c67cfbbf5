#include <gtest/gtest.h>

#include "cli/terminal.h"

namespace delayq::cli {
namespace {

using namespace std::chrono_literals;

constexpr Moment kNow = from_unix_ms(1'896'076'800'000);

TEST(Human, tells_times_as_exactly_as_is_worth_reading) {
  EXPECT_EQ(relative(kNow, kNow), "now");
  EXPECT_EQ(relative(kNow, kNow + 250ms), "in 250ms");
  EXPECT_EQ(relative(kNow, kNow - 2'345ms), "2.3s ago");
  EXPECT_EQ(relative(kNow, kNow + 29min + 58'999ms), "in 29m58s");
  EXPECT_EQ(relative(kNow, kNow + 3h + 59s), "in 3h");
  EXPECT_EQ(relative(kNow, kNow - 49h - 30min), "2d1h ago");
}

TEST(Human, prints_nothing_that_a_terminal_would_obey) {
  EXPECT_EQ(printable("{\"a\": 1}", 99), "{\"a\": 1}");
  EXPECT_EQ(printable("\x1b[2J\n", 99), "\\x1b[2J\\x0a");
  EXPECT_EQ(printable("\xff\xc3\xa9", 99), "\\xff\xc3\xa9");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("a\u202eb\u2066", 99), "a\\xe2\\x80\\xaeb\\xe2\\x81\\xa6") << "turned around";
  EXPECT_EQ(printable_json("{\"a\":\"\u009b31m\u202e\u00e9\"}"), "{\"a\":\"\\u009b31m\\u202e\u00e9\"}");
}

TEST(Human, groups_numbers_and_rounds_sizes) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(-1'234'567), "-1,234,567");
  EXPECT_EQ(rough_size(17), "17 B");
  EXPECT_EQ(rough_size(3 << 19), "1.5 MiB");
}

TEST(Human, aligns_tables) {
  Table table;
  table.row({"TOPIC", "READY", "NOTE"});
  table.row({"\xc3\xa9t\xc3\xa9", "1,234", "x"});
  table.row({"order", "7", ""});
  EXPECT_EQ(table.text(),
            "TOPIC  READY  NOTE\n"
            "\xc3\xa9t\xc3\xa9    1,234  x\n"
            "order      7\n");
}

}  // namespace
}  // namespace delayq::cli
