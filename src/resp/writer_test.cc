#include "resp/writer.h"

#include <limits>

#include <gtest/gtest.h>

#include "resp/value.h"

namespace delayq::resp {
namespace {

/// What `write` appends to a text that already holds something.
template <class Write>
std::string written(Version version, Write write) {
  std::string out = "before";
  Writer writer(out, version);
  write(writer);
  EXPECT_TRUE(out.starts_with("before"));
  return out.substr(6);
}

std::string in_both(void (*write)(Writer&)) {
  std::string old = written(Version::k2, write);
  EXPECT_EQ(written(Version::k3, write), old);
  return old;
}

TEST(Writer, SaysTheSameInBothVersionsWhereItCan) {
  EXPECT_EQ(in_both([](Writer& writer) { writer.simple("OK"); }), "+OK\r\n");
  EXPECT_EQ(in_both([](Writer& writer) { writer.error("INVALID", "no delay"); }), "-INVALID no delay\r\n");
  EXPECT_EQ(in_both([](Writer& writer) { writer.integer(-7); }), ":-7\r\n");
  EXPECT_EQ(in_both([](Writer& writer) { writer.integer(std::numeric_limits<int64_t>::min()); }),
            ":-9223372036854775808\r\n");
  EXPECT_EQ(in_both([](Writer& writer) { writer.bulk("a\r\nb"); }), "$4\r\na\r\nb\r\n");
  EXPECT_EQ(in_both([](Writer& writer) { writer.array(3); }), "*3\r\n");
}

TEST(Writer, SaysWhatIsNewAsRedisSaysItToOldClients) {
  const auto null = [](Writer& writer) { writer.null(); };
  EXPECT_EQ(written(Version::k2, null), "$-1\r\n");
  EXPECT_EQ(written(Version::k3, null), "_\r\n");
  const auto yes = [](Writer& writer) { writer.boolean(true); };
  EXPECT_EQ(written(Version::k2, yes), ":1\r\n");
  EXPECT_EQ(written(Version::k3, yes), "#t\r\n");
  const auto half = [](Writer& writer) { writer.number(0.5); };
  EXPECT_EQ(written(Version::k2, half), "$3\r\n0.5\r\n");
  EXPECT_EQ(written(Version::k3, half), ",0.5\r\n");
  const auto map = [](Writer& writer) { writer.map(2); };
  EXPECT_EQ(written(Version::k2, map), "*4\r\n");
  EXPECT_EQ(written(Version::k3, map), "%2\r\n");
}

TEST(Writer, WritesEveryNumberSoThatItIsReadBack) {
  for (const double number : {0.0, -0.1, 1e300, std::numeric_limits<double>::denorm_min()}) {
    const std::string text = written(Version::k3, [number](Writer& writer) { writer.number(number); });
    std::string_view rest = text;
    const auto value = take_reply(rest);
    ASSERT_TRUE(value.ok() && value->has_value());
    EXPECT_EQ((*value)->number, number);
  }
}

TEST(Writer, AppendsCommands) {
  std::string out;
  append_command(out, {"ACK", "", "1"});
  EXPECT_EQ(out, "*3\r\n$3\r\nACK\r\n$0\r\n\r\n$1\r\n1\r\n");
}

}  // namespace
}  // namespace delayq::resp
