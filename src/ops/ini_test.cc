#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/seed_config.h"

namespace delayq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// "line name=value" of each entry.
std::vector<std::string> entries_of(std::string_view text) {
  const IniText read = read_ini(text);
  EXPECT_THAT(read.errors.size(), 0u) << (read.errors.empty() ? "" : read.errors[0].what);
  std::vector<std::string> entries;
  for (const IniEntry& entry : read.entries)
    entries.push_back(std::to_string(entry.line) + " " + entry.name() + "=" + entry.value);
  return entries;
}

/// "line: what" of each error.
std::vector<std::string> errors_of(std::string_view text) {
  std::vector<std::string> errors;
  for (const IniError& error : read_ini(text).errors)
    errors.push_back(std::to_string(error.line) + ": " + error.what);
  return errors;
}

TEST(Ini, of_an_empty_text_is_empty) {
  EXPECT_THAT(entries_of(""), IsEmpty());
  EXPECT_THAT(entries_of("\n \r\n\t\n"), IsEmpty());
  EXPECT_FALSE(read_ini("# a\na = 1 ; b\n").has_semicolons) << "a TOML file may look so";
  EXPECT_TRUE(read_ini("  ; a\n").has_semicolons);
}

TEST(Ini, keys_have_sections) {
  EXPECT_THAT(entries_of("a=1\nb.c = 2\n[ one ] ; x\na : 3\n[two]\n a\t=\t4 \n"),
              ElementsAre("1 a=1", "2 b.c=2", "4 one.a=3", "6 two.a=4"));
}

TEST(Ini, comments_are_no_part_of_values) {
  EXPECT_THAT(entries_of("; a = 1\n# b = 2\nc = 3 ; 三\nd = 4;e\ne = 5 # f\nf =   ; nothing\ng = a b\n"),
              ElementsAre("3 c=3", "4 d=4", "5 e=5", "6 f=", "7 g=a b"));
}

TEST(Ini, values_in_quotes_may_have_anything) {
  EXPECT_THAT(entries_of("a = \"x;y#z\" ; c\nb = ' p = q '\nc = `\"`\nd = \"\"\ne = a\"b\n"),
              ElementsAre("1 a=x;y#z", "2 b= p = q ", "3 c=\"", "4 d=", "5 e=a\"b"));
}

TEST(Ini, the_first_sign_parts_key_from_value) {
  EXPECT_THAT(entries_of("a = b=c:d\nlisten = 0.0.0.0:9527\n"),
              ElementsAre("1 a=b=c:d", "2 listen=0.0.0.0:9527"));
}

TEST(Ini, takes_files_of_other_systems) {
  EXPECT_THAT(entries_of("\xef\xbb\xbf[a]\r\nb = 1 \r\nc = \"2\"\r\nd =\r\n"),
              ElementsAre("2 a.b=1", "3 a.c=2", "4 a.d="));
  EXPECT_THAT(entries_of("a = 1"), ElementsAre("1 a=1")) << "the last line may have no end";
}

TEST(Ini, tells_every_line_that_it_does_not_understand) {
  const IniText read = read_ini("[a\n[]\n[b] c\nword\n= 1\nd = \"x\ne = 'x' y\nf = x\\\ng = 1\n");
  EXPECT_THAT(
      errors_of("[a\n[]\n[b] c\nword\n= 1\nd = \"x\ne = 'x' y\nf = x\\\ng = 1\n"),
      ElementsAre(HasSubstr("1: a section needs its ]"), HasSubstr("2: the name of a section must have 1"),
                  HasSubstr("3: there is something after the ]"), HasSubstr("4: expected key = value"),
                  HasSubstr("5: a key must have 1"), HasSubstr("6: the value's closing quote is missing"),
                  HasSubstr("7: there is something after the value's closing quote"),
                  HasSubstr("8: a value that goes on")));
  ASSERT_EQ(read.entries.size(), 1u);
  EXPECT_EQ(read.entries[0].line, 9u);
}

TEST(Ini, never_repeats_what_may_be_a_secret) {
  for (const std::string& error : errors_of("password\npassword = \"hush\npassword = 'hush'!\nhush\n"))
    EXPECT_THAT(error, testing::Not(HasSubstr("hush")));
}

TEST(Ini, refuses_what_is_no_text) {
  EXPECT_THAT(errors_of("a = \xff\n"), ElementsAre(HasSubstr("1: this is not UTF-8")));
  EXPECT_THAT(errors_of("a = 1\nb = \x01\n"), ElementsAre(HasSubstr("2: there is a control character")));
  EXPECT_THAT(errors_of(std::string("a = 1\0\n", 7)), ElementsAre(HasSubstr("1: there is a control")));
  EXPECT_THAT(errors_of("a = \xc2\x9b"
                        "31m\n"),
              ElementsAre(HasSubstr("1: there is a control")));
  EXPECT_THAT(errors_of("\xff\xfe"
                        "a\n"),
              ElementsAre(HasSubstr("1: this is not UTF-8")));
}

TEST(Ini, is_bounded) {
  const std::string long_name(257, 'k');
  EXPECT_THAT(errors_of(long_name + " = 1\n[" + long_name + "]\n"),
              ElementsAre(HasSubstr("1: a key must have 1 to 256"),
                          HasSubstr("2: the name of a section must have 1 to 256")));
  EXPECT_THAT(errors_of("a = " + std::string(1 << 16, 'x') + "\nb = 1\n"),
              ElementsAre(HasSubstr("1: the line has 65540 bytes: at most 65536")));
  std::string many;
  for (int i = 0; i < 10'002; ++i) many += "a=1\n";
  const IniText entries = read_ini(many);
  EXPECT_EQ(entries.entries.size(), 10'000u);
  ASSERT_EQ(entries.errors.size(), 1u);
  EXPECT_EQ(entries.errors[0].line, 10'001u);
  std::string wrong;
  for (int i = 0; i < 200; ++i) wrong += "wrong\n";
  const IniText errors = read_ini(wrong);
  EXPECT_EQ(errors.errors.size(), 100u);
  EXPECT_THAT(errors.errors.back().what, HasSubstr("the rest of the file is not read"));
}

}  // namespace
}  // namespace delayq
