#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/terminal.h"
#include "cli/top.h"
#include "json/reader.h"

namespace delayq::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TopSnapshot snapshot() {
  TopSnapshot shot;
  shot.server = "127.0.0.1:9278";
  shot.at = from_unix_ms(1'700'000'000'000);
  shot.span = Millis{1'000};
  shot.topics = 2;
  shot.totals = {.topic = {}, .delayed = 1'234'567, .ready = 42, .push_rate = 1'500};
  shot.rows.push_back({.topic = "order",
                       .delayed = 99'999,
                       .ready = 2,
                       .reserved = 3,
                       .done = 4,
                       .dead = 5,
                       .waiters = 6,
                       .push_rate = 7.25,
                       .pop_rate = 8,
                       .ack_rate = 120.6,
                       .late_p50 = Millis{1},
                       .late_p99 = Millis{65'535},
                       .paused = true});
  shot.rows.push_back({.topic = "mail", .delayed = 123'456, .ready = 40, .late_p99 = Millis::max()});
  return shot;
}

TEST(TopView, shows_all_columns_when_there_is_room) {
  const TopLook look{.sort = TopSort::kReady, .scroll = 0, .width = 110, .height = 24, .styled = false};
  EXPECT_THAT(render_top(snapshot(), look),
              ElementsAre("delayq 127.0.0.1:9278  22:13:20 UTC  2 topics  rates over 1s",
                          "TOPIC                 DELAYED  READY* RESERVED    DONE    DEAD  PUSH/S   POP/S   "
                          "ACK/S     P50     P99 WAITERS",
                          "all topics               1.2M      42        0       0       0   1,500       -    "
                          "   -     0ms     0ms       0",
                          "order (paused)         99,999       2        3       4       5     7.2     8.0    "
                          " 121     1ms     65s       6",
                          "mail                     123k      40        0       0       0       -       -    "
                          "   -     0ms     >1d       0"));
}

TEST(TopView, leaves_columns_out_and_never_breaks_the_width) {
  for (size_t width = 1; width < 140; ++width) {
    for (const size_t height : {1, 2, 3, 4, 5, 6, 7}) {
      const TopLook look{
          .sort = TopSort::kName, .scroll = 0, .width = width, .height = height, .styled = false};
      const std::vector<std::string> lines = render_top(snapshot(), look);
      EXPECT_LE(lines.size(), height);
      for (const std::string& line : lines) EXPECT_LE(line.size(), width);
    }
  }
  const TopLook narrow{.sort = TopSort::kName, .scroll = 0, .width = 60, .height = 9, .styled = false};
  const std::string heading = render_top(snapshot(), narrow)[1];
  EXPECT_THAT(heading, StartsWith("TOPIC*"));
  EXPECT_THAT(heading, HasSubstr("READY"));
  EXPECT_THAT(heading, Not(HasSubstr("DONE")));
}

TEST(TopView, wide_characters_keep_the_columns_and_the_width) {
  TopSnapshot shot = snapshot();
  shot.rows[0].topic = "\u8ba2\u5355\u8d85\u65f6\u672a\u652f\u4ed8\u81ea\u52a8\u5173\u95ed";
  for (size_t width = 40; width < 140; ++width) {
    const TopLook look{.sort = TopSort::kName, .scroll = 0, .width = width, .height = 9, .styled = false};
    const std::vector<std::string> lines = render_top(shot, look);
    for (size_t i = 2; i < lines.size(); ++i)
      EXPECT_EQ(columns_of(lines[i]), columns_of(lines[1])) << width << lines[i];
  }
}

TEST(TopView, scrolls) {
  TopLook look{.sort = TopSort::kName, .scroll = 1, .width = 60, .height = 5, .styled = true};
  EXPECT_EQ(visible_rows(look), 1u);
  std::vector<std::string> lines = render_top(snapshot(), look);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_THAT(lines[3], StartsWith("mail "));
  look.scroll = 99;
  EXPECT_EQ(render_top(snapshot(), look).size(), 4u) << "nothing behind the end";
}

TEST(TopView, names_cannot_do_anything_to_the_terminal) {
  TopSnapshot shot = snapshot();
  shot.rows[0].topic = "a\x1b[2Jb";
  const TopLook look{.sort = TopSort::kName, .scroll = 0, .width = 80, .height = 9, .styled = false};
  EXPECT_THAT(render_top(shot, look)[3], StartsWith("a\\x1b[2Jb"));
}

TEST(TopView, says_that_it_is_old_and_which_page_it_is) {
  TopSnapshot shot = snapshot();
  shot.problem = "gone";
  shot.first = 500;
  const TopLook look{.sort = TopSort::kName, .scroll = 0, .width = 120, .height = 9, .styled = false};
  EXPECT_THAT(render_top(shot, look)[0], HasSubstr("2 topics, from 501"));
  EXPECT_THAT(render_top(shot, look)[0], HasSubstr("NOT NEW: gone"));
}

TEST(TopView, sorts_by_every_key) {
  for (const std::string& name : top_sort_names()) {
    TopSnapshot shot = snapshot();
    const TopSort sort = *top_sort_of(std::string_view(name));
    sort_rows(shot.rows, sort);
    const bool mail_first = sort == TopSort::kName || sort == TopSort::kDelayed || sort == TopSort::kReady ||
                            sort == TopSort::kLate;
    EXPECT_EQ(shot.rows[0].topic, mail_first ? "mail" : "order") << name;
  }
  EXPECT_EQ(top_sort_of('r'), TopSort::kReady);
  EXPECT_EQ(top_sort_of('?'), std::nullopt);
  EXPECT_EQ(top_sort_of(std::string_view("?")), std::nullopt);
}

TEST(TopView, is_json_for_programs) {
  const std::string text = top_as_json(snapshot());
  EXPECT_TRUE(json::parse(text).ok());
  EXPECT_THAT(text,
              StartsWith(R"({"at_ms":1700000000000,"span_ms":1000,"topics":2,"totals":{"delayed":1234567,)"));
  EXPECT_THAT(text, HasSubstr(R"("rows":[{"topic":"order","paused":true,"delayed":99999,)"));
}

}  // namespace
}  // namespace delayq::cli
