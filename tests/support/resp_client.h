#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "api/resp/conversation.h"
#include "resp/writer.h"
#include "tests/support/memory_queue.h"

namespace delayq::support {

/// A queue in memory with the RESP protocol, without sockets.
struct Backend : MemoryQueue {
  resp::Endpoint host{queue, [this] { return now; }, "9.9.9", kStart, [] { return size_t{7}; }, 0};
};

/// One client of a Backend.
class RespClient final : public net::Connection {
 public:
  explicit RespClient(Backend& backend)
      : backend_(backend), conversation_(std::make_shared<resp::Conversation>(backend.host, *this)) {}
  ~RespClient() override { hang_up(); }

  void on_output() override { ++told_; }
  void on_resume() override { ++resumed_; }

  /// Sends these bytes and returns the replies that come until nothing happens any more.
  std::string say(std::string_view bytes) {
    input_ += bytes;
    for (bool any = true; any;) {
      const size_t taken = conversation_->wants_input() && !input_.empty() ? conversation_->read(input_) : 0;
      input_.erase(0, taken);
      any = taken > 0;
      backend_.settle();
    }
    return std::exchange(conversation_->output(), {});
  }
  std::string say(std::initializer_list<std::string_view> words) {
    std::string bytes;
    resp::append_command(bytes, words);
    return say(bytes);
  }
  std::string hear() {
    backend_.settle();
    return say(std::string_view());
  }
  void hang_up() {
    if (conversation_ != nullptr) conversation_->hang_up();
    conversation_ = nullptr;
    backend_.settle();
  }
  resp::Conversation& conversation() { return *conversation_; }
  int resumed() const { return resumed_; }
  int told() const { return told_; }

 private:
  Backend& backend_;
  std::shared_ptr<resp::Conversation> conversation_;
  std::string input_;
  int told_ = 0;
  int resumed_ = 0;
};

/// A test with one server and one client.
class RespTest : public testing::Test {
 protected:
  /// The lease in the reply to a POP of one job.
  static std::string lease_in(const std::string& reply) {
    const size_t start = reply.find("\r\n", reply.find('$')) + 2;
    return reply.substr(start, reply.find("\r\n", start) - start);
  }

  Backend backend;
  RespClient client{backend};
};

}  // namespace delayq::support
