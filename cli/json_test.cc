#include "cli/json.h"

#include <gtest/gtest.h>

namespace delayq::cli {
namespace {

TEST(Json, writes_objects) {
  EXPECT_EQ(JsonObject().finish(), "{}");
  EXPECT_EQ(JsonObject().text("a", "x").number("b", -1).boolean("c", true).finish(),
            R"({"a":"x","b":-1,"c":true})");
}

TEST(Json, escapes_what_it_must) {
  EXPECT_EQ(JsonObject().text("a", "\"\\\n\t\x01/\xc3\xa9").finish(),
            "{\"a\":\"\\\"\\\\\\n\\u0009\\u0001/\xc3\xa9\"}");
}

TEST(Json, gives_bytes_that_are_no_text_in_base64) {
  EXPECT_EQ(JsonObject().text("body", "\xff").finish(), R"({"body_base64":"/w=="})");
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
}

}  // namespace
}  // namespace delayq::cli
