#include "delivery/webhook/address_guard.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

namespace delayq::webhook {
namespace {

IpAddress ip(std::string_view text) {
  const auto address = IpAddress::parse(text);
  EXPECT_TRUE(address) << text;
  return address.value_or(IpAddress{});
}

AddressGuard guard(const std::vector<std::string>& allow, const std::vector<std::string>& deny) {
  return std::move(AddressGuard::create(allow, deny)).value();
}

std::string refusal(const AddressGuard& guard, std::string_view address) {
  return guard.refusal(ip(address)).value_or("");
}

TEST(AddressGuard, AlwaysRefuses) {
  struct Row {
    std::string_view address;
    std::string_view why;
  };
  const Row rows[] = {
      {"0.0.0.0", "unspecified"},
      {"0.1.2.3", "unspecified"},
      {"::", "unspecified"},
      {"169.254.0.0", "link-local"},
      {"169.254.169.254", "link-local"},
      {"169.254.255.255", "link-local"},
      {"fe80::1", "link-local"},
      {"febf:ffff::1", "link-local"},
      {"224.0.0.1", "multicast"},
      {"239.255.255.255", "multicast"},
      {"ff02::1", "multicast"},
      {"240.0.0.1", "reserved"},
      {"255.255.255.255", "broadcast"},
      {"::ffff:169.254.169.254", "link-local"},
      {"::ffff:0.0.0.0", "unspecified"},
      {"::169.254.169.254", "link-local"},
      {"::ffff:0:169.254.169.254", "link-local"},
      {"64:ff9b::169.254.169.254", "link-local"},
      {"64:ff9b::a9fe:a9fe", "link-local"},
      {"64:ff9b:1::169.254.169.254", "link-local"},
      {"2002:a9fe:a9fe::1", "link-local"},
      {"2002:0000:0001::", "unspecified"},
      {"2002:e000:0001::1", "multicast"},
  };
  for (const AddressGuard& each : {AddressGuard{}, guard({"0.0.0.0/0", "::/0"}, {})}) {
    for (const Row& row : rows) {
      EXPECT_NE(refusal(each, row.address).find(row.why), std::string::npos)
          << row.address << ": " << refusal(each, row.address);
    }
  }
}

TEST(AddressGuard, AllowsWhereBackendsLive) {
  for (const std::string_view address :
       {"127.0.0.1", "::1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "fd00::1", "8.8.8.8", "2606:4700::1",
        "1.0.0.0", "168.254.1.1", "169.253.255.255", "169.255.0.0", "223.255.255.255", "fec0::1",
        "::ffff:127.0.0.1", "64:ff9b::8.8.8.8", "2002:0808:0808::1"}) {
    EXPECT_EQ(refusal(AddressGuard{}, address), "") << address;
  }
}

TEST(AddressGuard, DenyWinsOverAllow) {
  const AddressGuard both = guard({"10.0.0.0/8"}, {"10.1.0.0/16", "::1"});
  EXPECT_EQ(refusal(both, "10.2.0.1"), "");
  EXPECT_EQ(refusal(both, "10.1.0.1"), "10.1.0.1 is on the deny list");
  EXPECT_EQ(refusal(both, "::1"), "::1 is on the deny list");
  EXPECT_EQ(refusal(both, "11.0.0.1"), "11.0.0.1 is not on the allow list");
}

TEST(AddressGuard, AnAllowListAllowsNothingElse) {
  const AddressGuard some = guard({"192.0.2.7", "2001:db8::/33"}, {});
  EXPECT_EQ(refusal(some, "192.0.2.7"), "");
  EXPECT_NE(refusal(some, "192.0.2.8"), "");
  EXPECT_NE(refusal(some, "127.0.0.1"), "");
  EXPECT_EQ(refusal(some, "2001:db8:7fff::1"), "");
  EXPECT_NE(refusal(some, "2001:db8:8000::1"), "");
}

TEST(AddressGuard, SeesTheAddressInTheAddress) {
  const AddressGuard some = guard({}, {"127.0.0.0/8"});
  for (const std::string_view address : {"127.0.0.1", "127.255.255.255", "::ffff:127.0.0.1", "::127.0.0.1",
                                         "64:ff9b::127.0.0.1", "2002:7f00:0001::"}) {
    EXPECT_NE(refusal(some, address), "") << address;
  }
  EXPECT_EQ(refusal(some, "::1"), "") << "another kind of address";
  EXPECT_EQ(refusal(guard({"10.0.0.0/8"}, {}), "64:ff9b::10.0.0.1"), "");
}

TEST(AddressGuard, ARangeOfOneKindHasNoneOfTheOther) {
  EXPECT_EQ(refusal(guard({}, {"::/0"}), "127.0.0.1"), "");
  EXPECT_NE(refusal(guard({}, {"::/0"}), "::1"), "");
  EXPECT_NE(refusal(guard({"::/0"}, {}), "127.0.0.1"), "");
  EXPECT_EQ(refusal(guard({}, {"0.0.0.0/0"}), "fd00::1"), "");
}

TEST(Network, SaysWhatIsWrong) {
  struct Row {
    std::string_view text;
    std::string_view says;
  };
  const Row rows[] = {
      {"", "is not a network"},
      {"host", "is not a network"},
      {"10.0.0.0/33", "from 0 to 32"},
      {"::/129", "from 0 to 128"},
      {"10.0.0.0/", "from 0 to 32"},
      {"10.0.0.0/-1", "from 0 to 32"},
      {"10.0.0.0/8x", "from 0 to 32"},
      {"10.0.0.1/8", "beyond its first 8"},
      {"fd00::1/8", "beyond its first 8"},
      {"010.0.0.0/8", "is not a network"},
      {"[::1]", "is not a network"},
  };
  for (const Row& row : rows) {
    const auto network = Network::parse(row.text);
    ASSERT_FALSE(network.ok()) << row.text;
    EXPECT_NE(network.error().detail.find(row.says), std::string::npos) << network.error().detail;
  }
  const auto lists = AddressGuard::create({"10.0.0.0/8"}, {"nowhere"});
  ASSERT_FALSE(lists.ok());
  EXPECT_TRUE(lists.error().detail.starts_with("deny: \"nowhere\"")) << lists.error().detail;
}

TEST(IpAddress, ComesFromSockets) {
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = htonl(0xA9FEA9FE);
  EXPECT_EQ(IpAddress::from(reinterpret_cast<const sockaddr&>(four)), ip("169.254.169.254"));
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_addr = in6addr_loopback;
  EXPECT_EQ(IpAddress::from(reinterpret_cast<const sockaddr&>(six)), ip("::1"));
  sockaddr local{};
  local.sa_family = AF_UNIX;
  EXPECT_EQ(IpAddress::from(local), std::nullopt);
  EXPECT_EQ(ip("::ffff:1.2.3.4").to_string(), "1.2.3.4");
}

}  // namespace
}  // namespace delayq::webhook
