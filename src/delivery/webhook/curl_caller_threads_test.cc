// Real calls to a server on a loopback port: what is sent, what is made of the answer, and what is bounded.
#include <cstdlib>
#include <thread>

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
using support::post;
using support::TestHost;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A server that always answers the same.
TestHost::Serve always(std::string bytes) {
  return http([bytes = std::move(bytes)](const std::string&) { return bytes; });
}

/// Keeps what it was asked.
class Listener {
 public:
  TestHost::Serve serve() {
    return http([this](const std::string& request) {
      const std::lock_guard lock(mutex_);
      last_ = request;
      return http_reply(200, "ok");
    });
  }
  std::string last() {
    const std::lock_guard lock(mutex_);
    return last_;
  }

 private:
  std::mutex mutex_;
  std::string last_;
};

TEST(CurlCaller, SendsTheCallAndBringsTheAnswer) {
  Listener listener;
  TestHost host(listener.serve());
  CallerDriver caller({.user_agent = "delayq/9"});
  Call call = post(host.url("/hooks/order?x=1"), R"({"uid":1})");
  call.headers.add("Content-Type", "application/json");
  call.headers.add("webhook-id", "msg_1");
  call.headers.add("nothing", "");
  const CallResult result = caller.call(std::move(call));
  EXPECT_EQ(result.error, CallError::kNone) << result.error_text;
  EXPECT_EQ(result.status, 200);
  EXPECT_EQ(result.answer, "ok");
  EXPECT_FALSE(result.is_answer_cut);
  EXPECT_GT(result.took.count(), 0);
  EXPECT_THAT(listener.last(),
              AllOf(StartsWith("POST /hooks/order?x=1 HTTP/1.1\r\n"), HasSubstr("Content-Length: 9\r\n"),
                    HasSubstr("Content-Type: application/json\r\n"), HasSubstr("webhook-id: msg_1\r\n"),
                    HasSubstr("User-Agent: delayq/9\r\n"), Not(HasSubstr("nothing")),
                    HasSubstr("\r\n\r\n{\"uid\":1}")));
}

TEST(CurlCaller, AddsNoTypeAndDoesNotAskToContinue) {
  Listener listener;
  TestHost host(listener.serve());
  CallerDriver caller;
  EXPECT_EQ(caller.call(post(host.url(), std::string(2 << 20, 'x'))).status, 200);
  EXPECT_THAT(listener.last().substr(0, 1000),
              AllOf(Not(HasSubstr("Content-Type")), Not(HasSubstr("Expect"))));
}

TEST(CurlCaller, UsesTheMethodOfEachCall) {
  Listener listener;
  TestHost host(listener.serve());
  CallerDriver caller({.max_calls = 1});  // so that one handle gets all of them
  struct Row {
    std::string method;
    std::string body;
    std::string says;
  };
  for (const Row& row :
       {Row{"PUT", "b", "Content-Length: 1\r\n"}, Row{"GET", "", "\r\n\r\n"},
        Row{"POST", "", "Content-Length: 0\r\n"}, Row{"DELETE", "b", "Content-Length: 1\r\n"},
        Row{"PATCH", "b", "\r\n\r\nb"}, Row{"GET", "b", "\r\n\r\nb"}, Row{"POST", "b", "\r\n\r\nb"}}) {
    Call call = post(host.url(), row.body);
    call.method = row.method;
    EXPECT_EQ(caller.call(std::move(call)).status, 200) << row.method;
    EXPECT_THAT(listener.last(), AllOf(StartsWith(row.method + " / HTTP/1.1\r\n"), HasSubstr(row.says)));
  }
  EXPECT_EQ(host.accepts(), 1);
}

TEST(CurlCaller, HeadHasNoBodyToWaitFor) {
  TestHost host(always("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"));
  CallerDriver caller;
  Call call = post(host.url(), "");
  call.method = "HEAD";
  EXPECT_EQ(caller.call(std::move(call)).status, 200);
}

TEST(CurlCaller, UsesAConnectionAgain) {
  TestHost host(always(http_reply(200, "ok")));
  CallerDriver caller;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(caller.call(post(host.url())).status, 200);
  EXPECT_EQ(host.accepts(), 1);
}

TEST(CurlCaller, ComesBackAfterTheHostClosed) {
  TestHost host(always(http_reply(200, "ok", "Connection: close\r\n")));
  CallerDriver caller;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(caller.call(post(host.url())).status, 200);
  EXPECT_EQ(host.accepts(), 5);
}

TEST(CurlCaller, MakesManyCallsAtOnce) {
  TestHost host(
      http([](const std::string& request) { return http_reply(200, request.substr(request.size() - 4)); }));
  CallerDriver caller({.max_calls = 50});
  int ended = 0;
  int right = 0;
  std::function<void(int)> begin = [&](int number) {
    caller->call(post(host.url(), std::to_string(number)), [&, number](const CallResult& result) {
      ++ended;
      right += result.answer == std::to_string(number) ? 1 : 0;
      if (number + 50 < 2000) begin(number + 50);
    });
  };
  for (int number = 1000; number < 1050; ++number) begin(number);
  EXPECT_EQ(caller->room(), 0u);
  caller.until([&] { return ended == 1000; });
  EXPECT_EQ(right, 1000);
  EXPECT_LE(host.accepts(), 50);
  EXPECT_EQ(caller->room(), 50u);
}

TEST(CurlCaller, RefusesMoreThanItHasRoomFor) {
  TestHost host(always(http_reply(200, "ok")));
  CallerDriver caller({.max_calls = 1});
  std::vector<CallError> errors;
  for (int i = 0; i < 2; ++i) {
    caller->call(post(host.url()), [&](const CallResult& result) { errors.push_back(result.error); });
  }
  EXPECT_TRUE(errors.empty()) << "never from inside call()";
  caller.until([&] { return errors.size() == 2; });
  EXPECT_THAT(errors, testing::UnorderedElementsAre(CallError::kNoRoom, CallError::kNone));
  EXPECT_EQ(caller->room(), 1u);
}

TEST(CurlCaller, TellsEveryStatusAsItIs) {
  for (const int status : {204, 301, 302, 308, 400, 404, 410, 429, 500, 503}) {
    TestHost host(always(http_reply(status, status == 204 ? "" : "why", "Location: /elsewhere\r\n")));
    CallerDriver caller;
    const CallResult result = caller.call(post(host.url()));
    EXPECT_TRUE(result.is_answered()) << result.error_text;
    EXPECT_EQ(result.status, status);
    EXPECT_EQ(host.accepts(), 1) << "no redirect is followed";
  }
}

TEST(CurlCaller, ReadsRetryAfter) {
  const std::pair<std::string, RetryAfter> rows[] = {
      {"Retry-After: 120\r\n", {.delay = std::chrono::seconds(120), .at = {}}},
      {"retry-after:  7 \r\n", {.delay = std::chrono::seconds(7), .at = {}}},
      {"Retry-After: Wed, 21 Oct 2015 07:28:00 GMT\r\n",
       {.delay = {}, .at = from_unix_ms(1'445'412'480'000)}},
  };
  for (const auto& [header, expected] : rows) {
    TestHost host(always(http_reply(503, "later", header)));
    CallerDriver caller;
    EXPECT_EQ(caller.call(post(host.url())).retry_after, expected) << header;
  }
}

TEST(CurlCaller, TellsThatNobodyListens) {
  uint16_t port = 0;
  { port = TestHost(always("")).port(); }
  CallerDriver caller;
  const CallResult result = caller.call(post("http://127.0.0.1:" + std::to_string(port)));
  EXPECT_EQ(result.error, CallError::kConnect);
  EXPECT_EQ(result.status, 0);
  EXPECT_FALSE(result.error_text.empty());
}

TEST(CurlCaller, GivesUpOnAHostThatHangs) {
  TestHost host(always(""));
  CallerDriver caller;
  Call call = post(host.url());
  call.total_timeout = Millis{50};
  const CallResult result = caller.call(std::move(call));
  EXPECT_EQ(result.error, CallError::kTimeout) << result.error_text;
  EXPECT_GE(result.took, Millis{50});
}

TEST(CurlCaller, TheDefaultTimeoutCountsWhenACallSaysNothing) {
  TestHost host(always(""));
  CallerDriver caller({.default_timeout = Millis{50}});
  Call call;
  call.url = host.url();
  EXPECT_EQ(caller.call(std::move(call)).error, CallError::kTimeout);
}

TEST(CurlCaller, GivesUpOnABodyThatComesTooSlowly) {
  TestHost host(always("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun"));
  CallerDriver caller;
  Call call = post(host.url());
  call.total_timeout = Millis{50};
  const CallResult result = caller.call(std::move(call));
  EXPECT_EQ(result.error, CallError::kTimeout);
  EXPECT_EQ(result.status, 0) << "half an answer is none";
}

TEST(CurlCaller, AHostThatHangsHoldsUpNobodyElse) {
  TestHost dead(always(""));
  TestHost alive(always(http_reply(200, "ok")));
  CallerDriver caller;
  for (int i = 0; i < 20; ++i) {
    caller->call(post(dead.url()), [](const CallResult&) { ADD_FAILURE() << "that one hangs"; });
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(caller.call(post(alive.url())).status, 200);
}

TEST(CurlCaller, KeepsTheBeginningOfAnAnswer) {
  const std::string exact(kAnswerBytes, 'a');
  const std::string longer = exact + "b";
  TestHost fits(always(http_reply(200, exact)));
  TestHost cut(always(http_reply(200, longer)));
  CallerDriver caller;
  const CallResult whole = caller.call(post(fits.url()));
  EXPECT_EQ(whole.answer, exact);
  EXPECT_FALSE(whole.is_answer_cut);
  for (int i = 0; i < 2; ++i) {
    const CallResult part = caller.call(post(cut.url()));
    EXPECT_EQ(part.answer, exact);
    EXPECT_TRUE(part.is_answer_cut);
  }
  EXPECT_EQ(cut.accepts(), 1) << "it was read to its end";
}

TEST(CurlCaller, AnAnswerWithoutEndIsAnAnswer) {
  TestHost host([](support::TestPeer& peer) {
    std::string request;
    if (!peer.read(request)) return;
    peer.write("HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (peer.write("1000\r\n" + std::string(0x1000, 'x') + "\r\n")) {
    }
  });
  CallerDriver caller;
  const CallResult result = caller.call(post(host.url()));
  EXPECT_EQ(result.error, CallError::kNone) << result.error_text;
  EXPECT_EQ(result.status, 202);
  EXPECT_EQ(result.answer, std::string(kAnswerBytes, 'x'));
  EXPECT_TRUE(result.is_answer_cut);
}

TEST(CurlCaller, BoundsTheHeadersOfAnAnswer) {
  std::string many;
  for (size_t i = 0; i <= CurlCaller::kHeaderLines; ++i) many += "X: y\r\n";
  std::string large;
  for (int i = 0; i < 20; ++i) large += "X: " + std::string(4000, 'y') + "\r\n";
  CallerDriver caller;
  for (const std::string& headers : {many, large}) {
    TestHost host(always(http_reply(200, "ok", headers)));
    const CallResult result = caller.call(post(host.url()));
    EXPECT_EQ(result.error, CallError::kBroken);
    EXPECT_THAT(result.error_text, HasSubstr("headers"));
  }
}

TEST(CurlCaller, InterimAnswersHaveNoEndEither) {
  TestHost host([](support::TestPeer& peer) {
    std::string request;
    if (!peer.read(request)) return;
    while (peer.write("HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n")) {
    }
  });
  CallerDriver caller;
  EXPECT_EQ(caller.call(post(host.url())).error, CallError::kBroken);
}

TEST(CurlCaller, NoticesWhatIsNoHttp) {
  for (const std::string bytes :
       {"hello\r\n\r\n", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nshort"}) {
    TestHost host([bytes](support::TestPeer& peer) {
      std::string request;
      if (peer.read(request)) peer.write(bytes);
    });
    CallerDriver caller;
    EXPECT_EQ(caller.call(post(host.url())).error, CallError::kBroken) << bytes;
  }
}

TEST(CurlCaller, RefusesWhatIsNoCall) {
  CallerDriver caller;
  for (const std::string url :
       {"", "nowhere at all", "http://", "http://a b/", "ftp://127.0.0.1/", "file:///etc/passwd",
        "gopher://127.0.0.1:70/", "http://127.0.0.1:99999/", "http://127.0.0.1\n/"}) {
    EXPECT_EQ(caller.call(post(url)).error, CallError::kBadCall) << url;
  }
  TestHost host(always(http_reply(200, "ok")));
  Call evil = post(host.url());
  evil.headers.add("x", "a\r\nHost: evil");
  EXPECT_EQ(caller.call(std::move(evil)).error, CallError::kBadCall);
  Call odd = post(host.url());
  odd.method = "POST / HTTP/1.1\r\nX:";
  EXPECT_EQ(caller.call(std::move(odd)).error, CallError::kBadCall);
  EXPECT_EQ(host.accepts(), 0);
  EXPECT_EQ(caller.call(post(host.url())).status, 200) << "and goes on";
}

TEST(CurlCaller, LooksForNoProxy) {
  ::setenv("http_proxy", "http://127.0.0.1:9", 1);  // NOLINT(concurrency-mt-unsafe): no other thread yet
  ::setenv("all_proxy", "http://127.0.0.1:9", 1);   // NOLINT(concurrency-mt-unsafe)
  TestHost host(always(http_reply(200, "ok")));
  CallerDriver caller;
  EXPECT_EQ(caller.call(post(host.url())).status, 200);
  ::unsetenv("http_proxy");  // NOLINT(concurrency-mt-unsafe)
  ::unsetenv("all_proxy");   // NOLINT(concurrency-mt-unsafe)
}

TEST(CurlCaller, IsDestroyedWhileCallsAreInFlight) {
  std::atomic<int> begun = 0;
  std::mutex mutex;
  std::condition_variable changed;
  TestHost host(http([&](const std::string&) {
    const std::lock_guard lock(mutex);
    ++begun;
    changed.notify_all();
    return std::string();
  }));
  auto token = std::make_shared<int>(0);
  {
    CallerDriver caller;
    for (int i = 0; i < 10; ++i) {
      caller->call(post(host.url()), [token](const CallResult&) { ADD_FAILURE() << "nobody answered"; });
    }
    caller->hear();
    caller->poll();
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, std::chrono::seconds(30), [&] { return begun == 10; }));
    caller->call(post(host.url()), [token](const CallResult&) { ADD_FAILURE() << "it never left"; });
  }
  EXPECT_EQ(token.use_count(), 1) << "what waited for answers is gone";
}

TEST(CurlCaller, SaysThatAFileIsMissing) {
  const auto caller = CurlCaller::open({.ca_file = "/nowhere/ca.pem"});
  ASSERT_FALSE(caller.ok());
  EXPECT_THAT(caller.error().detail, HasSubstr("ca_file: \"/nowhere/ca.pem\""));
}

TEST(CurlCaller, ACallThatWaitedForTooLongIsNotBegun) {
  Listener listener;
  TestHost host(listener.serve());
  const std::thread::id owner = std::this_thread::get_id();
  CallerDriver caller({.clock = [owner] {
    const bool is_worker = std::this_thread::get_id() != owner;
    return std::chrono::microseconds{is_worker ? std::chrono::seconds{10} : std::chrono::seconds{0}};
  }});
  Call late = post(host.url("/late"), "1");
  late.start_within = std::chrono::milliseconds{9'999};
  const CallResult result = caller.call(std::move(late));
  EXPECT_EQ(result.error, CallError::kNoRoom);
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(listener.last(), "") << "nothing was sent";
  Call patient = post(host.url("/patient"), "1");
  patient.start_within = std::chrono::seconds{10};
  EXPECT_EQ(caller.call(std::move(patient)).status, 200);
}

}  // namespace
}  // namespace delayq::webhook
