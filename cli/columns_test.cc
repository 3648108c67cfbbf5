#include <gtest/gtest.h>

#include "cli/terminal.h"

namespace delayq::cli {
namespace {

TEST(Columns, count_what_a_terminal_shows) {
  EXPECT_EQ(columns_of("order"), 5U);
  EXPECT_EQ(columns_of(""), 0U);
  EXPECT_EQ(columns_of("\u8ba2\u5355"), 4U) << "Chinese";
  EXPECT_EQ(columns_of("\u30c6\u30b9\u30c8"), 6U) << "Katakana";
  EXPECT_EQ(columns_of("\uc8fc\ubb38"), 4U) << "Hangul";
  EXPECT_EQ(columns_of("\uff21\uff11"), 4U) << "full-width letters";
  EXPECT_EQ(columns_of("\u00fcber"), 4U);
  EXPECT_EQ(columns_of("u\u0308ber"), 4U) << "a mark above a letter";
  EXPECT_EQ(columns_of("\U0001f600"), 2U);
  EXPECT_EQ(columns_of("a\xff\xfe"), 3U) << "bytes that are no characters";
}

TEST(Columns, a_text_is_cut_between_characters) {
  EXPECT_EQ(cut_to_columns("order", 3), "ord");
  EXPECT_EQ(cut_to_columns("order", 9), "order");
  EXPECT_EQ(cut_to_columns("\u8ba2\u5355", 3), "\u8ba2") << "half of a character is not shown";
  EXPECT_EQ(cut_to_columns("u\u0308b", 1), "u\u0308");
  EXPECT_EQ(cut_to_columns("\u8ba2", 0), "");
}

TEST(Columns, a_table_is_aligned_by_them) {
  Table table;
  table.row({"TOPIC", "READY"});
  table.row({"\u8ba2\u5355", "7"});
  table.row({"order", "12"});
  EXPECT_EQ(table.text(), "TOPIC  READY\n\u8ba2\u5355       7\norder     12\n");
}

}  // namespace
}  // namespace delayq::cli
