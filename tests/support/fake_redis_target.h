#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "delivery/redis_sink.h"

namespace delayq::support {

/// A Redis whose replies come when the test says so.
class FakeRedisTarget final : public delivery::RedisTarget {
 public:
  struct Made {
    std::string key;
    std::vector<std::string> words;
    Answer answer;
  };

  void call(std::string_view key, std::span<const std::string_view> words, Answer answer) override {
    open_.push_back({std::string(key), {words.begin(), words.end()}, std::move(answer)});
  }
  bool poll() override {
    auto ended = std::exchange(ended_, {});
    for (auto& [made, result] : ended) made.answer(std::move(result));
    return !ended.empty();
  }
  bool is_connected() const override { return connected_; }

  /// Commands without a reply.
  const std::deque<Made>& open() const { return open_; }
  /// Sets the reply to the first open command; it comes at the next poll().
  void answer(Result<std::string> result) {
    ended_.emplace_back(std::move(open_.front()), std::move(result));
    open_.pop_front();
  }
  void answer_all(const Result<std::string>& result) {
    while (!open_.empty()) answer(result);
  }
  void set_connected(bool connected) { connected_ = connected; }

 private:
  std::deque<Made> open_;
  std::vector<std::pair<Made, Result<std::string>>> ended_;
  bool connected_ = true;
};

}  // namespace delayq::support
