#include <array>
#include <charconv>

#include <fmt/format.h>

#include "tests/simulation/connections/talker.h"
#include "tests/simulation/connections/wire.h"

namespace delayq::connections {

namespace {

class HttpTalker final : public Talker {
 public:
  using Talker::Talker;

  void ask(std::string& out, std::deque<Asked>& asked) override {
    // Each request shows its token, or does not.
    is_known_ = !needs_token_ || random_.chance(4, 5);
    const std::string tag = next_tag();
    if (random_.chance(1, 8)) return say(out, asked, "GET /healthz", "", "\"ok\"", false);
    if (!is_known_) return try_without_token(out, asked, tag);
    if (random_.chance(1, 30)) {
      static constexpr std::array<std::string_view, 4> kStreams{"topic=own", "news=all", "news=all&topic=own",
                                                                "news=pushed,done&after=1.1"};
      const std::string_view stream = kStreams[random_.below(kStreams.size())];
      say(out, asked, fmt::format("GET /v1/events?{}", stream), "", "text/event-stream", false);
      asked_for_news_ = stream.starts_with("news");
      is_over_ = true;  // what comes behind it would wait for ever
      return;
    }
    const std::string big = fmt::format("big-{}", random_.below(kBigJobs));
    switch (random_.below(9)) {
      case 0:
      case 1:
        return say(out, asked, "PUT /v1/topics/own/jobs/" + tag,
                   fmt::format(R"({{"delay":"1h","body":"{}"}})", body()), tag, false);
      case 2:
      case 3:
      case 4:
        return say(out, asked, "GET /v1/topics/big/jobs/" + big, "", big, false);
      case 5:
        return say(out, asked, "GET /v1/export?limit=100", "", "big-", false);
      case 6:
        return say(out, asked, "GET /v1/topics/big/jobs?state=delayed&bodies=true", "", "big-", false);
      case 7:
        return say(out, asked, "POST /v1/topics/due/pop",
                   random_.chance(1, 4) ? R"({"wait":"1s","ack":"auto"})" : R"({"count":5,"ack":"auto"})",
                   "jobs", false);
      default:
        return say(out, asked, "GET /v1/nosuch/" + tag, "", "404", true);
    }
  }

  std::optional<Answer> take_answer(std::string& input) override {
    if (is_streaming_) {
      pass_over_events(input);
      return std::nullopt;
    }
    const size_t end = input.find("\r\n\r\n");
    if (end == std::string::npos) return std::nullopt;
    if (!input.starts_with("HTTP/1.1 ")) throw Broken("what came is no response: " + input.substr(0, 60));
    const std::string head = input.substr(0, end);
    const size_t at = head.find("Content-Length: ");
    if (at == std::string::npos && head.find("text/event-stream") != std::string::npos) {
      is_streaming_ = true;
      input.erase(0, end + 4);
      return Answer{false, head};
    }
    if (at == std::string::npos) throw Broken("a response without a length: " + head);
    size_t length = 0;
    std::from_chars(head.data() + at + 16, head.data() + head.size(), length);
    if (input.size() < end + 4 + length) return std::nullopt;
    Answer answer{head[9] >= '4', input.substr(0, end + 4 + length),
                  head.find("Connection: close") != std::string::npos};
    input.erase(0, answer.text.size());
    return answer;
  }

 private:
  void say(std::string& out, std::deque<Asked>& asked, const std::string& line, const std::string& body,
           std::string must_have, bool is_refused) {
    out += line + " HTTP/1.1\r\nHost: localhost\r\n";
    if (needs_token_ && is_known_) out += fmt::format("Authorization: Bearer {}\r\n", kSecret);
    if (random_.chance(1, 40)) {
      out += "Connection: close\r\n";
      is_over_ = true;
    }
    if (body.empty()) {
      out += "\r\n";
    } else if (random_.chance(1, 3)) {
      out += "Transfer-Encoding: chunked\r\n\r\n";
      const size_t half = body.size() / 2;
      if (half > 0) out += fmt::format("{:x}\r\n{}\r\n", half, body.substr(0, half));
      out += fmt::format("{:x}\r\n{}\r\n0\r\n\r\n", body.size() - half, body.substr(half));
    } else {
      out += fmt::format("Content-Length: {}\r\n\r\n{}", body.size(), body);
    }
    asked.push_back({line, std::move(must_have), is_refused, body.find("wait") != std::string::npos});
  }

  void try_without_token(std::string& out, std::deque<Asked>& asked, const std::string& tag) {
    switch (random_.below(3)) {
      case 0:
        return say(out, asked, "PUT /v1/topics/evil/jobs/evil-" + tag, R"({"body":"x"})", "401", true);
      case 1:
        return say(out, asked, fmt::format("DELETE /v1/topics/safe/jobs/safe-{}", random_.below(kSafeJobs)),
                   "", "401", true);
      default:
        return say(out, asked, "DELETE /v1/topics/safe", "", "401", true);
    }
  }

  /// Each line begins like one of an event, and an event ends with an empty line.
  static void pass_over_events(std::string& input) {
    for (size_t end = 0; (end = input.find('\n')) != std::string::npos; input.erase(0, end + 1)) {
      const std::string_view line = std::string_view(input).substr(0, end);
      const bool is_known = line.empty() || line.starts_with("event: ") || line.starts_with("data: {") ||
                            line.starts_with("id: ") || line.starts_with(": ");
      const bool is_whole = !line.starts_with("data: ") || line.ends_with('}');
      if (!is_known || !is_whole) throw Broken("what came is no event: " + std::string(line.substr(0, 60)));
    }
  }

  bool is_streaming_ = false;  ///< what comes now are events
};

}  // namespace

std::unique_ptr<Talker> make_http_talker(Random& random, std::string prefix, bool needs_token) {
  return std::make_unique<HttpTalker>(random, std::move(prefix), needs_token);
}

}  // namespace delayq::connections
