#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "delivery/webhook/curl_caller.h"

namespace delayq::support {

/// A CurlCaller that is polled by the test's own thread.
class CallerDriver {
 public:
  explicit CallerDriver(webhook::CurlCallerOptions options = {}) {
    auto caller = webhook::CurlCaller::open(std::move(options));
    EXPECT_TRUE(caller.ok()) << (caller.ok() ? "" : caller.error().detail);
    caller_ = std::move(*caller);
    caller_->set_wakeup([this] {
      const std::lock_guard lock(mutex_);
      is_woken_ = true;
      woken_.notify_one();
    });
  }

  webhook::CurlCaller& operator*() { return *caller_; }
  webhook::CurlCaller* operator->() { return caller_.get(); }

  /// Polls until `is_done`, sleeping until it is woken. Returns false, with a test
  /// failure, after a long time.
  template <class Condition>
  bool until(Condition is_done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (;;) {
      caller_->hear();
      caller_->poll();
      if (is_done()) return true;
      std::unique_lock lock(mutex_);
      if (!woken_.wait_until(lock, deadline, [this] { return is_woken_; })) {
        ADD_FAILURE() << "nothing came for a long time";
        return false;
      }
      is_woken_ = false;
    }
  }

  /// Makes one call and returns its result.
  webhook::CallResult call(webhook::Call call) {
    std::optional<webhook::CallResult> result;
    caller_->call(std::move(call), [&](webhook::CallResult answer) { result = std::move(answer); });
    until([&] { return result.has_value(); });
    return result.value_or(webhook::CallResult{});
  }

 private:
  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_woken_ = false;
  std::unique_ptr<webhook::CurlCaller> caller_;
};

/// A POST of a small body with a long timeout.
inline webhook::Call post(std::string url, std::string body = "body") {
  webhook::Call call;
  call.url = std::move(url);
  call.body = std::move(body);
  call.total_timeout = std::chrono::seconds(20);
  return call;
}

}  // namespace delayq::support
