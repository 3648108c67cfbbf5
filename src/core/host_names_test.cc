#include <gtest/gtest.h>

#include "core/address.h"

namespace delayq {
namespace {

TEST(HostNames, localhost_and_addresses_are_nobody_elses) {
  const HostNames names{std::vector<std::string>{}};
  for (const std::string_view host :
       {"localhost", "LOCALHOST:9277", "localhost.", "127.0.0.1", "127.0.0.1:9277", "10.1.2.3:80", "[::1]",
        "[::1]:9277", "[::ffff:127.0.0.1]:1", "localhost:"}) {
    EXPECT_TRUE(names.accepts(host)) << host;
  }
}

TEST(HostNames, other_names_are_refused_unless_they_are_configured) {
  const HostNames none{std::vector<std::string>{}};
  const HostNames some{std::vector<std::string>{"Delayq.example.com", "*.svc.local"}};
  for (const std::string_view host : {"delayq.example.com", "DELAYQ.example.com:443", "delayq.example.com.",
                                      "a.svc.local", "a.b.svc.local:9277"}) {
    EXPECT_FALSE(none.accepts(host)) << host;
    EXPECT_TRUE(some.accepts(host)) << host;
  }
  for (const std::string_view host : {"",
                                      "evil.example",
                                      "localhost.evil.example",
                                      "127.0.0.1.evil.example",
                                      "evil.delayq.example.com",
                                      "svc.local",
                                      ".svc.local",
                                      "xsvc.local",
                                      "1.2.3",
                                      "1.2.3.4.5",
                                      "1.2.3.4444",
                                      "999.1.1.1",
                                      "1.2.3.256",
                                      ":9277",
                                      "1.2.3.",
                                      "1..2.3",
                                      "[::1",
                                      "[::1]x",
                                      "[evil:]",
                                      "::1",
                                      "a:b@localhost",
                                      "localhost:x",
                                      "localhost:9277:1",
                                      "localhost:123456",
                                      "user@localhost",
                                      "localhost/",
                                      "x",
                                      "*"}) {
    EXPECT_FALSE(none.accepts(host)) << host;
    EXPECT_FALSE(some.accepts(host)) << host;
  }
}

TEST(HostNames, a_star_turns_the_check_off) {
  EXPECT_TRUE(HostNames().accepts("evil.example"));
  EXPECT_TRUE(HostNames({"*"}).accepts(""));
}

TEST(HostNames, patterns_are_names) {
  for (const std::string_view good : {"*", "a", "a.b", "*.b", "my_host-1.example.com", "10.0.0.1"}) {
    EXPECT_TRUE(check_host_pattern(good).ok()) << good;
  }
  for (const std::string_view bad :
       {"", ".a", "a:80", "http://a", "a/b", "**", "*a", "a.*", "*.", "a b", "[::1]"}) {
    EXPECT_FALSE(check_host_pattern(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace delayq
