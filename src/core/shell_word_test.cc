#include <gtest/gtest.h>

#include "core/text.h"

namespace delayq {
namespace {

TEST(ShellWord, is_quoted_where_a_shell_needs_it) {
  EXPECT_EQ(shell_word("/var/lib/delayq"), "/var/lib/delayq");
  EXPECT_EQ(shell_word("my data"), "'my data'");
  EXPECT_EQ(shell_word("it's"), R"('it'\''s')");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace delayq
