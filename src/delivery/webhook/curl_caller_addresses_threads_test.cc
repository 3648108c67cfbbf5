// Where calls may not go. Every probe ends at the step that opens the socket, which here only takes notes: no
// packet is sent to any address that is not loopback, and no name is asked for, because the resolver is
// replaced as well.
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <netdb.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delivery/webhook/curl_caller.h"
#include "tests/support/caller_driver.h"
#include "tests/support/test_host.h"

namespace {

/// What names lead to, in this program.
class Names {
 public:
  static Names& instance() {
    static Names names;
    return names;
  }

  /// An address for the name, or nothing. "slow.test" takes until it is let go.
  const char* look_up(std::string_view name) {
    if (name == "metadata.test") return "169.254.169.254";
    if (name == "loopback.test") return "127.0.0.1";
    if (name != "slow.test") return nullptr;
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return is_let_go_; });
    --waiting_;
    changed_.notify_all();
    return "127.0.0.1";
  }
  bool wait_for_waiting(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return waiting_ == count; });
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    is_let_go_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool is_let_go_ = false;
};

}  // namespace

/// Instead of the C library's, also for libcurl: one block with the entry and its address, as freeaddrinfo()
/// wants it.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* /*hints*/,
                           addrinfo** result) {
  const char* const found = Names::instance().look_up(name);
  if (found == nullptr) return EAI_NONAME;
  auto* const block = static_cast<char*>(std::calloc(1, sizeof(addrinfo) + sizeof(sockaddr_in)));
  auto* const entry = reinterpret_cast<addrinfo*>(block);
  auto* const address = reinterpret_cast<sockaddr_in*>(block + sizeof(addrinfo));
  address->sin_family = AF_INET;
  address->sin_port =
      htons(service != nullptr ? static_cast<uint16_t>(std::strtol(service, nullptr, 10)) : 0);
  inet_pton(AF_INET, found, &address->sin_addr);
  entry->ai_family = AF_INET;
  entry->ai_socktype = SOCK_STREAM;
  entry->ai_addrlen = sizeof(sockaddr_in);
  entry->ai_addr = reinterpret_cast<sockaddr*>(address);
  *result = entry;
  return 0;
}

namespace delayq::webhook {
namespace {

using support::CallerDriver;
using support::http;
using support::http_reply;
using support::post;
using support::TestHost;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Opens sockets to loopback, and takes notes of every address that came as far as this.
class Notes {
 public:
  SocketOpener opener() {
    return [this](const sockaddr& address, int type, int protocol) {
      const std::string text = IpAddress::from(address).value().to_string();
      const std::lock_guard lock(mutex_);
      reached_.push_back(text);
      return text == "127.0.0.1" ? ::socket(address.sa_family, type | SOCK_CLOEXEC, protocol) : -1;
    };
  }
  std::vector<std::string> reached() {
    const std::lock_guard lock(mutex_);
    return reached_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> reached_;
};

AddressGuard denying(const std::vector<std::string>& networks) {
  return std::move(AddressGuard::create({}, networks)).value();
}

TEST(CurlCallerAddresses, NoProbeReachesASocket) {
  Notes notes;
  CurlCallerOptions options;
  options.opener = notes.opener();
  options.known_hosts = {"pinned.test:80:169.254.169.254", "six.test:80:[fe80::1]"};
  CallerDriver caller(std::move(options));
  for (const std::string url : {
           "http://169.254.169.254/latest/meta-data/",
           "https://169.254.169.254/",
           "http://0.0.0.0/",
           "http://[::]/",
           "http://0/",
           "http://2852039166/",
           "http://0xA9FEA9FE/",
           "http://0xa9.0xfe.0xa9.0xfe/",
           "http://0251.0376.0251.0376/",
           "http://169.254.43518/",
           "http://[::ffff:169.254.169.254]/",
           "http://[::ffff:a9fe:a9fe]/",
           "http://[64:ff9b::169.254.169.254]/",
           "http://[2002:a9fe:a9fe::]/",
           "http://[fe80::1]/",
           "http://[ff02::1]/",
           "http://224.0.0.1/",
           "http://255.255.255.255/",
           "http://metadata.test/",
           "http://pinned.test/",
           "http://six.test/",
           "http://user:password@169.254.169.254/",
           "http://127.0.0.1@169.254.169.254/",
           "http://169%2E254%2E169%2E254/",
       }) {
    const CallResult result = caller.call(post(url));
    EXPECT_EQ(result.error, CallError::kRefusedAddress) << url << ": " << result.error_text;
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.error_text, HasSubstr("must not be called")) << url;
  }
  EXPECT_THAT(notes.reached(), IsEmpty());
}

TEST(CurlCallerAddresses, ARedirectToOneIsNotFollowed) {
  TestHost host(
      http([](const std::string&) { return http_reply(302, "", "Location: http://169.254.169.254/\r\n"); }));
  Notes notes;
  CallerDriver caller({.opener = notes.opener()});
  EXPECT_EQ(caller.call(post(host.url())).status, 302);
  EXPECT_THAT(notes.reached(), ElementsAre("127.0.0.1"));
}

TEST(CurlCallerAddresses, TheDenyListIsKeptAlsoForNames) {
  TestHost host(http([](const std::string&) { return http_reply(200, "ok"); }));
  Notes notes;
  CurlCallerOptions options;
  options.guard = denying({"127.0.0.0/8"});
  options.opener = notes.opener();
  CallerDriver caller(std::move(options));
  for (const std::string_view name : {"127.0.0.1", "loopback.test", "2130706433", "[::ffff:127.0.0.1]"}) {
    const CallResult result = caller.call(post(host.url("/", name)));
    EXPECT_EQ(result.error, CallError::kRefusedAddress) << name;
    EXPECT_THAT(result.error_text, HasSubstr("127.0.0.1 is on the deny list"));
  }
  EXPECT_EQ(host.accepts(), 0);
  EXPECT_THAT(notes.reached(), IsEmpty());
}

TEST(CurlCallerAddresses, NamesAreResolvedAsideAndDoNotHoldUpOthers) {
  TestHost host(http([](const std::string&) { return http_reply(200, "ok"); }));
  CallerDriver caller;
  EXPECT_EQ(caller.call(post(host.url("/", "loopback.test"))).status, 200);
  const CallResult unknown = caller.call(post(host.url("/", "unknown.test")));
  EXPECT_EQ(unknown.error, CallError::kResolve) << unknown.error_text;

  Call slow = post(host.url("/", "slow.test"));
  slow.total_timeout = Millis{50};
  EXPECT_EQ(caller.call(std::move(slow)).error, CallError::kTimeout)
      << "while its name is still being looked up";
  EXPECT_TRUE(Names::instance().wait_for_waiting(1));
  EXPECT_EQ(caller.call(post(host.url())).status, 200);
  Names::instance().let_go();
  EXPECT_TRUE(Names::instance().wait_for_waiting(0));
  EXPECT_EQ(caller.call(post(host.url("/", "slow.test"))).status, 200);
}

}  // namespace
}  // namespace delayq::webhook
