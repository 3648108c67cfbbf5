#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/text.h"

namespace delayq {
namespace {

TEST(Quote, plain_text_stays) {
  EXPECT_EQ(quote("10x"), R"("10x")");
  EXPECT_EQ(quote(""), R"("")");
  EXPECT_EQ(quote("\xc3\xa9t\xc3\xa9"), "\"\xc3\xa9t\xc3\xa9\"");
}

TEST(Quote, escapes_what_could_do_harm) {
  EXPECT_EQ(quote(R"(a"b\c)"), R"("a\"b\\c")");
  EXPECT_EQ(quote("a\nb\x1b[1m"), R"("a\x0ab\x1b[1m")");
  EXPECT_EQ(quote("a\xff\xc3"), R"("a\xff\xc3")");
  EXPECT_EQ(quote("\xc2\x85"), R"("\xc2\x85")") << "U+0085, a control character of two bytes";
}

TEST(Quote, cuts_long_text_between_characters) {
  EXPECT_EQ(quote(std::string(60, 'a')), '"' + std::string(60, 'a') + '"');
  EXPECT_EQ(quote(std::string(61, 'a')), '"' + std::string(60, 'a') + "...\"");
  EXPECT_EQ(quote(std::string(59, 'a') + "\xe2\x82\xac" + "b"),
            '"' + std::string(59, 'a') + "\xe2\x82\xac...\"");
}

TEST(NamesSecret, is_what_must_not_be_shown) {
  for (const char* name : {"password", "kafka.password", "settings.ssl.key.password", "ssl.key.pem",
                           "sasl.oauthbearer.client.secret", "sasl.oauthbearer.config"})
    EXPECT_TRUE(names_secret(name)) << name;
  for (const char* name : {"", "user", "linger.ms", "password_file"})
    EXPECT_FALSE(names_secret(name)) << name;
}

RC_GTEST_PROP(Quote, is_always_short_printable_utf8, (const std::string& bytes)) {
  const std::string text = quote(bytes);
  RC_ASSERT(text.size() <= 63 * 4 + 5);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::optional<char32_t> code_point = take_code_point(rest);
    RC_ASSERT(code_point.has_value());
    RC_ASSERT(!is_control(*code_point));
  }
}

}  // namespace
}  // namespace delayq
