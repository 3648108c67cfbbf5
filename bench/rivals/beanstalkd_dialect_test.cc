#include "bench/rivals/beanstalkd_dialect.h"

#include <gtest/gtest.h>

namespace delayq::bench {
namespace {

TEST(BeanstalkdDialect, MakesTheCommands) {
  const BeanstalkdDialect dialect(3);
  std::string out;
  dialect.append_push(0, 0, out);
  dialect.append_far_push(out);
  dialect.append_pop(0, out);
  EXPECT_EQ(out, "put 0 0 60 3\r\nbbb\r\nput 0 3600 60 3\r\nbbb\r\nreserve-with-timeout 0\r\n");
}

TEST(BeanstalkdDialect, TellsRepliesApart) {
  const BeanstalkdDialect dialect(3);
  EXPECT_EQ(dialect.first_reply("INSERTED 12\r\nINS")->size, 13U);
  EXPECT_FALSE(dialect.first_reply("DELETED\r\n")->is_error);
  EXPECT_FALSE(dialect.first_reply("TIMED_OUT\r\n")->is_error);
  EXPECT_TRUE(dialect.first_reply("NOT_FOUND\r\n")->is_error);
  const std::string reserved = "RESERVED 12 3\r\nb\nb\r\n";
  for (size_t size = 1; size < reserved.size(); ++size)
    EXPECT_EQ(dialect.first_reply(reserved.substr(0, size))->size, 0U);
  EXPECT_EQ(dialect.first_reply(reserved + "DEL")->size, reserved.size());
}

TEST(BeanstalkdDialect, DeletesWhatWasReserved) {
  const BeanstalkdDialect dialect(3);
  std::string out;
  EXPECT_EQ(dialect.append_acks("RESERVED 12 3\r\nbbb\r\n", out), 1U);
  EXPECT_EQ(dialect.append_acks("TIMED_OUT\r\n", out), 0U);
  EXPECT_EQ(out, "delete 12\r\n");
}

}  // namespace
}  // namespace delayq::bench
