#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>

#include "net/redis/client.h"

namespace delayq::support {

/// A client without a Redis: the test sets the reply to every command, which comes at the next poll().
class ScriptedClient final : public net::redis::Client {
 public:
  using net::redis::Client::call;
  void call(std::string_view, std::span<const std::string_view> words, net::redis::Answer answer) override {
    waiting_.emplace_back(std::string(words[0]), std::move(answer));
  }
  void run(const net::redis::Script& script, std::span<const std::string_view>,
           std::span<const std::string_view>, net::redis::Answer answer) override {
    waiting_.emplace_back(std::string(script.name), std::move(answer));
  }
  void subscribe(std::string, std::function<void(std::string_view)> heard,
                 std::function<void()> listening) override {
    hear = std::move(heard);
    begin_listening = std::move(listening);
  }
  size_t poll() override {
    auto waiting = std::exchange(waiting_, {});
    for (auto& [name, answer] : waiting) answer(reply(name));
    return waiting.size();
  }
  size_t outstanding() const override { return waiting_.size(); }
  bool is_connected() const override { return is_there; }
  bool is_cluster() const override { return false; }
  std::string_view last_error() const override { return {}; }
  Moment now() const override { return {}; }
  Millis clock_offset() const override { return Millis{0}; }
  const net::redis::ClientFigures& figures() const override { return figures_; }

  std::function<Result<resp::Value>(const std::string& name)> reply;  ///< to a command, or to a script
  /// sends a message to the last subscriber
  std::function<void(std::string_view message)> hear;
  std::function<void()> begin_listening;
  bool is_there = true;

 private:
  std::deque<std::pair<std::string, net::redis::Answer>> waiting_;
  net::redis::ClientFigures figures_;
};

}  // namespace delayq::support
