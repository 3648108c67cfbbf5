// Calls over TLS: who is believed, and HTTP/2 where it is offered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "delivery/webhook/curl_caller.h"
#include "tests/support/caller_driver.h"
#include "tests/support/test_host.h"

namespace delayq::webhook {
namespace {

using support::CallerDriver;
using support::http;
using support::http_reply;
using support::Identity;
using support::post;
using support::TestHost;
using support::TestPeer;
using testing::HasSubstr;

TestHost::Serve ok() {
  return http([](const std::string&) { return http_reply(200, "ok"); });
}

TEST(CurlCallerTls, BelievesItsOwnAuthority) {
  const Identity identity("IP:127.0.0.1");
  TestHost host(ok(), &identity);
  CallerDriver caller({.ca_file = identity.file()});
  for (int i = 0; i < 3; ++i) {
    const CallResult result = caller.call(post(host.url()));
    EXPECT_EQ(result.status, 200) << result.error_text;
  }
  EXPECT_EQ(host.accepts(), 1);
  EXPECT_THAT(host.offered(), HasSubstr("\x02h2"));
}

TEST(CurlCallerTls, BelievesNobodyElse) {
  const Identity identity("IP:127.0.0.1");
  const Identity other("IP:127.0.0.1");
  TestHost host(ok(), &identity);
  for (const std::string& authority : {std::string(), other.file()}) {
    CallerDriver caller({.ca_file = authority});
    const CallResult result = caller.call(post(host.url()));
    EXPECT_EQ(result.error, CallError::kTls) << result.error_text;
    EXPECT_EQ(result.status, 0);
  }
}

TEST(CurlCallerTls, AsksForTheRightName) {
  const Identity identity("DNS:elsewhere.test");
  TestHost host(ok(), &identity);
  CallerDriver caller({.ca_file = identity.file()});
  EXPECT_EQ(caller.call(post(host.url())).error, CallError::kTls);
}

TEST(CurlCallerTls, BelievesEverybodyWhenToldSo) {
  const Identity identity("DNS:elsewhere.test");
  TestHost host(ok(), &identity);
  CallerDriver caller({.skips_tls_check = true});
  EXPECT_EQ(caller.call(post(host.url())).status, 200);
}

TEST(CurlCallerTls, NoticesThatTheOtherSpeaksNoTls) {
  TestHost host([](TestPeer& peer) {
    std::string hello;
    if (peer.read(hello)) peer.write(http_reply(400, "what?"));
  });
  CallerDriver caller;
  EXPECT_EQ(caller.call(post("https://127.0.0.1:" + std::to_string(host.port()))).error, CallError::kTls);
}

/// The least of HTTP/2: every request is answered with status 200 and "ok".
class LeastHttp2 {
 public:
  static void serve(TestPeer& peer) {
    EXPECT_EQ(peer.protocol(), "h2");
    LeastHttp2(peer).run();
  }

 private:
  enum Type : uint8_t { kData = 0, kHeaders = 1, kSettings = 4 };
  static constexpr uint8_t kEndStream = 1;
  static constexpr uint8_t kAck = 1;
  static constexpr uint8_t kEndHeaders = 4;
  static constexpr size_t kPreface = 24;
  static constexpr size_t kFrameHead = 9;

  explicit LeastHttp2(TestPeer& peer) : peer_(peer) {}

  bool fill(size_t bytes) {
    while (input_.size() < bytes) {
      if (!peer_.read(input_)) return false;
    }
    return true;
  }

  bool send(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
    std::string frame{0, 0, static_cast<char>(payload.size()), static_cast<char>(type),
                      static_cast<char>(flags)};
    for (const int shift : {24, 16, 8, 0}) frame += static_cast<char>(stream >> shift & 0xff);
    return peer_.write(frame + std::string(payload));
  }

  void run() {
    if (!fill(kPreface)) return;
    input_.erase(0, kPreface);
    send(kSettings, 0, 0, "");
    while (fill(kFrameHead)) {
      const auto byte = [&](size_t at) { return static_cast<uint32_t>(static_cast<uint8_t>(input_[at])); };
      const size_t length = byte(0) << 16 | byte(1) << 8 | byte(2);
      const uint32_t type = byte(3);
      const uint32_t flags = byte(4);
      const uint32_t stream = byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8);
      if (!fill(kFrameHead + length)) return;
      input_.erase(0, kFrameHead + length);
      if (type == kSettings && (flags & kAck) == 0) send(kSettings, kAck, 0, "");
      if ((type == kHeaders || type == kData) && (flags & kEndStream) != 0) {
        send(kHeaders, kEndHeaders, stream, "\x88");  // :status: 200, from the static table
        send(kData, kEndStream, stream, "ok");
      }
    }
  }

  TestPeer& peer_;
  std::string input_;
};

TEST(CurlCallerTls, SpeaksHttp2WhereItIsOffered) {
  const Identity identity("IP:127.0.0.1");
  TestHost host(&LeastHttp2::serve, &identity, "\x02h2");
  CallerDriver caller({.ca_file = identity.file()});
  int ended = 0;
  for (int i = 0; i < 20; ++i) {
    caller->call(post(host.url("/" + std::to_string(i))), [&](const CallResult& result) {
      ++ended;
      EXPECT_EQ(result.status, 200) << result.error_text;
      EXPECT_EQ(result.answer, "ok");
    });
  }
  caller.until([&] { return ended == 20; });
  EXPECT_EQ(caller.call(post(host.url())).status, 200);
  EXPECT_EQ(host.accepts(), 1) << "all share one connection";
}

}  // namespace
}  // namespace delayq::webhook
