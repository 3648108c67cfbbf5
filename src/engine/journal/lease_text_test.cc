#include <set>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "engine/journal/job_table.h"
#include "tests/support/evenly.h"

namespace delayq::journal {
namespace {

std::string text_of(const LeaseNumber& number) {
  const LeaseText text = format_lease(number);
  return {text.data(), text.size()};
}

RC_GTEST_PROP(LeaseText, is_read_as_written, ()) {
  const LeaseNumber number{*evenly<uint64_t>(0, uint64_t{1} << 48), *evenly<uint64_t>(0, UINT64_MAX)};
  RC_ASSERT(parse_lease(text_of(number)) == number);
}

TEST(LeaseText, the_ends_of_the_range) {
  for (const LeaseNumber number : {LeaseNumber{0, 0}, LeaseNumber{(uint64_t{1} << 48) - 1, UINT64_MAX}}) {
    EXPECT_EQ(parse_lease(text_of(number)), number);
  }
}

TEST(LeaseText, is_letters_and_digits) {
  for (const char letter : text_of({123'456'789, 987'654'321})) EXPECT_TRUE(std::isalnum(letter)) << letter;
}

TEST(LeaseText, one_lease_has_one_text) {
  // The first digit of the lease can hold more bits than the lease has.
  std::string text = text_of({1, UINT64_MAX});
  text[10] = 'z';
  EXPECT_FALSE(parse_lease(text));
  text[10] = 'f';
  EXPECT_TRUE(parse_lease(text));
  text[10] = 'g';
  EXPECT_FALSE(parse_lease(text));
  // So can that of the number.
  text = text_of({(uint64_t{1} << 48) - 1, 1});
  ASSERT_EQ(text[0], '7');
  text[0] = '8';
  EXPECT_FALSE(parse_lease(text));
  EXPECT_FALSE(parse_lease("A" + text_of({1, 2}).substr(1)));
}

TEST(LeaseText, anything_else_is_refused) {
  const std::string good = text_of({1, 2});
  EXPECT_FALSE(parse_lease(""));
  EXPECT_FALSE(parse_lease(good.substr(1)));
  EXPECT_FALSE(parse_lease(good + "0"));
  for (const char letter : std::string_view("iloU-/ \x80", 8)) {
    for (size_t place : {size_t{0}, size_t{9}, size_t{10}, good.size() - 1}) {
      std::string bad = good;
      bad[place] = letter;
      EXPECT_FALSE(parse_lease(bad)) << bad;
    }
  }
}

}  // namespace
}  // namespace delayq::journal
