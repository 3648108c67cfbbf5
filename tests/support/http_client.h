#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "api/http/conversation.h"
#include "tests/support/memory_queue.h"

namespace delayq::http {

/// A client of a conversation without sockets, with a queue in memory behind it.
class HttpClient : public MemoryQueue, public net::Connection {
 public:
  struct Answer {
    int status = 0;
    std::string head;
    std::string body;
  };

  HttpClient() : conversation(std::make_shared<Conversation>(host, *this)) {}
  ~HttpClient() override { conversation->hang_up(); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void on_output() override {}
  void on_resume() override { ++resumed; }
  std::string_view peer() const override { return "127.0.0.1:40312"; }
  size_t unsent() const override { return unsent_bytes; }

  std::string say(std::string_view bytes) {
    input += bytes;
    for (bool any = true; any;) {
      const size_t taken = conversation->wants_input() && !input.empty() ? conversation->read(input) : 0;
      input.erase(0, taken);
      any = taken > 0;
      settle();
    }
    return std::exchange(conversation->output(), {});
  }

  /// `headers` are additional header lines, each with its line end.
  static std::string request(std::string_view method, std::string_view target, std::string_view body = {},
                             std::string_view type = "application/json", std::string_view headers = {}) {
    return fmt::format("{} {} HTTP/1.1\r\nHost: x\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}\r\n{}",
                       method, target, type, body.size(), headers, body);
  }

  static Answer parse(const std::string& text) {
    const size_t end = text.find("\r\n\r\n");
    Answer answer{0, text.substr(0, end), end == std::string::npos ? "" : text.substr(end + 4)};
    if (text.starts_with("HTTP/1.1 ")) answer.status = std::stoi(text.substr(9, 3));
    return answer;
  }

  Answer ask(std::string_view method, std::string_view target, std::string_view body = {},
             std::string_view type = "application/json", std::string_view headers = {}) {
    return parse(say(request(method, target, body, type, headers)));
  }

  /// The same with a token.
  Answer ask_as(std::string_view secret, std::string_view method, std::string_view target,
                std::string_view body = {}) {
    return ask(method, target, body, "application/json", fmt::format("Authorization: Bearer {}\r\n", secret));
  }

  /// The text of this member in the first object that has it.
  static std::string member(const std::string& json, std::string_view name) {
    const size_t start = json.find(fmt::format("\"{}\":\"", name));
    if (start == std::string::npos) return {};
    const size_t value = start + name.size() + 4;
    return json.substr(value, json.find('"', value) - value);
  }

  Endpoint host{queue, [this] { return now; }, "9.9.9"};
  std::shared_ptr<Conversation> conversation;
  std::string input;
  int resumed = 0;
  size_t unsent_bytes = 0;
};

}  // namespace delayq::http
