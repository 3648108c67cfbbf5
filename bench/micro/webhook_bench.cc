// How many calls a second the caller makes to a receiver that answers at once: libcurl, its thread and the
// hand-over, without a queue. The receiver is `delayq listen` as a process of its own, given by its URL, or
// else a thread in this one.
#include <condition_variable>
#include <ctime>
#include <mutex>
#include <string>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "bench/micro/harness.h"
#include "cli/receiver.h"
#include "delivery/webhook/curl_caller.h"

namespace delayq::bench {
namespace {

constexpr size_t kAtOnce = 64;

/// A receiver on a thread, for as long as this lives.
class OwnReceiver {
 public:
  OwnReceiver() : receiver_(cli::Receiver::open({"127.0.0.1", 0}).value()), stop_(::eventfd(0, EFD_CLOEXEC)) {
    thread_ = std::thread([this] {
      const std::string answer = cli::http_answer(200, "ok");
      const auto handler = [&](const cli::ReceivedRequest&) -> std::string_view { return answer; };
      [[maybe_unused]] const Status status = receiver_.run(stop_, handler, [] {});
    });
  }
  ~OwnReceiver() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t bytes = ::write(stop_, &one, sizeof one);
    thread_.join();
    ::close(stop_);
  }
  OwnReceiver(const OwnReceiver&) = delete;
  OwnReceiver& operator=(const OwnReceiver&) = delete;

  std::string url() const { return fmt::format("http://127.0.0.1:{}/hook", receiver_.port()); }

 private:
  cli::Receiver receiver_;
  int stop_;
  std::thread thread_;
};

webhook::Call make_call(const std::string& url, const std::string& body) {
  webhook::Call call;
  call.url = url;
  call.body = body;
  call.total_timeout = std::chrono::seconds(30);
  call.connect_timeout = std::chrono::seconds(5);
  call.headers.reserve(400);
  call.headers.add("Content-Type", "application/json");
  call.headers.add("webhook-id", "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W");
  call.headers.add("webhook-timestamp", "1674087231");
  call.headers.add("webhook-signature", "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=");
  call.headers.add("delayq-topic", "order");
  call.headers.add("delayq-job-id", "order:1234567");
  call.headers.add("delayq-attempt", "1");
  call.headers.add("delayq-due", "2030-01-31T08:00:00.000Z");
  return call;
}

void run(const std::string& url, uint64_t calls) {
  auto caller = webhook::CurlCaller::open({.max_calls = kAtOnce}).value();
  std::mutex mutex;
  std::condition_variable woken;
  bool is_woken = false;
  caller->set_wakeup([&] {
    const std::lock_guard lock(mutex);
    is_woken = true;
    woken.notify_one();
  });
  const std::string body(128, 'x');
  uint64_t begun = 0;
  uint64_t ended = 0;
  uint64_t right = 0;
  const Stopwatch watch;
  const double cpu = cpu_seconds();
  while (ended < calls) {
    for (; caller->room() > 0 && begun < calls; ++begun) {
      caller->call(make_call(url, body), [&](const webhook::CallResult& result) {
        ++ended;
        right += result.status == 200 ? 1 : 0;
      });
    }
    caller->hear();
    if (caller->poll()) continue;
    std::unique_lock lock(mutex);
    woken.wait(lock, [&] { return is_woken; });
    is_woken = false;
  }
  const double seconds = watch.seconds();
  report(fmt::format("{} calls, {} at once, 128 B bodies", calls, kAtOnce),
         fmt::format("{:.0f} k/s, {:.1f} us of CPU each", static_cast<double>(calls) / seconds / 1000,
                     (cpu_seconds() - cpu) * 1e6 / static_cast<double>(calls)));
  if (right != calls) {
    fmt::print("{} of {} were not answered with 200\n", calls - right, calls);
    std::exit(1);
  }
}

}  // namespace
}  // namespace delayq::bench

int main(int argc, char** argv) {
  using delayq::bench::OwnReceiver;
  const uint64_t calls = delayq::bench::is_smoke(argc, argv) ? 2'000 : 200'000;
  if (argc > 1 && std::string_view(argv[1]).starts_with("http")) {
    delayq::bench::run(argv[1], calls);
  } else {
    delayq::bench::run(OwnReceiver().url(), calls);
  }
}
