#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/encoding.h"

namespace delayq {
namespace {

TEST(Base64, IsThatOfTheRfc) {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"},
      {"\xff\xfe\xfd", "//79"},
  };
  for (const auto& [bytes, text] : rows) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), std::string(bytes));
  }
}

TEST(Base64, RefusesAllElse) {
  for (const std::string_view text :
       {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "Zg==Zg==", "Z===", "Zm 9v", "Zm9v\n", "-_-_"}) {
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
  }
}

RC_GTEST_PROP(Base64, ComesBack, (const std::string& bytes)) {
  RC_ASSERT(from_base64(to_base64(bytes)) == bytes);
}

}  // namespace
}  // namespace delayq
