#include <algorithm>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "json/reader.h"

namespace delayq::json {
namespace {

size_t one_by_one(std::string_view text) {
  const auto* const stop = std::find_if(text.data(), text.data() + text.size(),
                                        [](char c) { return !is_plain(static_cast<unsigned char>(c)); });
  return static_cast<size_t>(stop - text.data());
}

TEST(PlainPrefix, ends_at_each_byte_that_needs_an_escape_wherever_it_stands) {
  for (int byte = 0; byte < 256; ++byte) {
    for (size_t place = 0; place < 20; ++place) {
      std::string text(20, 'x');
      text[place] = static_cast<char>(byte);
      EXPECT_EQ(plain_prefix(text), one_by_one(text)) << byte << " at " << place;
    }
  }
}

RC_GTEST_PROP(PlainPrefix, agrees_with_looking_at_each_byte, (const std::string& text)) {
  RC_ASSERT(plain_prefix(text) == one_by_one(text));
}

}  // namespace
}  // namespace delayq::json
