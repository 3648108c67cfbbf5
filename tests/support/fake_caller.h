#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "delivery/webhook/call.h"
#include "queue/delivery.h"

namespace delayq::support {

/// A caller whose calls end when the test says so.
class FakeCaller final : public webhook::Caller {
 public:
  using Call = webhook::Call;
  using CallResult = webhook::CallResult;

  struct Made {
    Call call;
    Done done;
  };

  void call(Call call, Done done) override { open_.push_back({std::move(call), std::move(done)}); }
  void hear() override {
    for (auto& each : std::exchange(ended_, {})) heard_.push_back(std::move(each));
  }
  bool poll() override {
    auto heard = std::exchange(heard_, {});
    for (auto& [made, result] : heard) made.done(result);
    return !heard.empty();
  }
  size_t room() const override {
    return room_ - std::min(room_, open_.size() + ended_.size() + heard_.size());
  }
  void set_wakeup(std::function<void()> wakeup) override { (void)wakeup; }

  /// Calls that have not ended.
  const std::deque<Made>& open() const { return open_; }
  size_t open_to(std::string_view host) const {
    return static_cast<size_t>(std::count_if(
        open_.begin(), open_.end(), [&](const Made& made) { return host_of(made.call.url) == host; }));
  }
  /// Ends the first open call to the host (to any host, if empty) with this result; the next hear() and
  /// poll() call its `done`.
  void end(const CallResult& result, std::string_view host = {}) {
    const auto found = std::find_if(open_.begin(), open_.end(), [&](const Made& made) {
      return host.empty() || host_of(made.call.url) == host;
    });
    if (found == open_.end()) return;
    ended_.emplace_back(std::move(*found), result);
    open_.erase(found);
  }
  void answer(int status, std::string body = {}, std::string_view host = {}) {
    CallResult result;
    result.status = status;
    result.answer = std::move(body);
    result.took = std::chrono::milliseconds{1};
    end(result, host);
  }
  void refuse(std::string_view host = {}) {
    CallResult result;
    result.error = webhook::CallError::kConnect;
    result.error_text = "refused";
    end(result, host);
  }
  void set_room(size_t room) { room_ = room; }

 private:
  std::deque<Made> open_;
  std::vector<std::pair<Made, CallResult>> ended_;
  std::vector<std::pair<Made, CallResult>> heard_;
  size_t room_ = 10'000;
};

}  // namespace delayq::support
