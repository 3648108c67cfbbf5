#include <string>

#include <gtest/gtest.h>

#include "core/text.h"

namespace delayq {
namespace {

const std::vector<std::string_view> kKnown{"resp", "http", "engine", "max_connections"};

TEST(Nearest, finds_slips) {
  EXPECT_EQ(nearest("rsep", kKnown), "resp");
  EXPECT_EQ(nearest("engin", kKnown), "engine");
  EXPECT_EQ(nearest("https", kKnown), "http");
  EXPECT_EQ(nearest("maxconnections", kKnown), "max_connections");
  EXPECT_EQ(nearest("max_conections", kKnown), "max_connections");
}

TEST(Nearest, keeps_quiet_about_others) {
  EXPECT_EQ(nearest("colour", kKnown), "");
  EXPECT_EQ(nearest("x", {"ab"}), "");
  EXPECT_EQ(nearest("", {"a", "b"}), "");
  EXPECT_EQ(nearest(std::string(100'000, 'e'), kKnown), "");
  EXPECT_EQ(nearest("resp", {}), "");
}

}  // namespace
}  // namespace delayq
