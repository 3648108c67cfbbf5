#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "resp/value.h"
#include "tests/simulation/connections/talker.h"
#include "tests/simulation/connections/wire.h"

namespace delayq::connections {

std::string Talker::body() {
  const size_t size = random_.chance(1, 10) ? random_.between(1, 20'000) : random_.between(1, 60);
  return std::string(size, static_cast<char>('a' + random_.below(26)));
}

namespace {

class RespTalker final : public Talker {
 public:
  using Talker::Talker;

  void ask(std::string& out, std::deque<Asked>& asked) override {
    if (needs_token_ && !is_known_ && random_.chance(1, 4)) return authenticate(out, asked);
    if (random_.chance(1, 60)) {
      is_over_ = true;
      return say(out, asked, {"QUIT"}, "OK");
    }
    const std::string tag = next_tag();
    if (random_.chance(1, 10)) {
      say(out, asked, {"NOSUCH" + tag}, tag);
      asked.back().is_refused = true;
      return;
    }
    if (needs_token_ && !is_known_) return try_without_token(out, asked, tag);
    ask_known(out, asked, tag);
  }

  std::optional<Answer> take_answer(std::string& input) override {
    while (input.starts_with('>')) {
      if (!pass_over_news(input)) return std::nullopt;
    }
    const Result<std::optional<size_t>> size = resp::reply_size(input);
    if (!size.ok()) throw Broken("what came is no reply: " + to_string(size.error()));
    if (!*size) return std::nullopt;
    Answer answer{input[0] == '-', input.substr(0, **size)};
    input.erase(0, **size);
    return answer;
  }

 private:
  void say(std::string& out, std::deque<Asked>& asked, std::initializer_list<std::string> words,
           std::string must_have) {
    const bool is_line = words.size() == 1 && random_.chance(1, 4);
    if (is_line) {
      out += *words.begin() + "\r\n";
    } else {
      out += fmt::format("*{}\r\n", words.size());
      for (const std::string& word : words) out += fmt::format("${}\r\n{}\r\n", word.size(), word);
    }
    const bool waits =
        std::any_of(words.begin(), words.end(), [](const auto& word) { return word == "WAIT"; });
    asked.push_back({*words.begin(), std::move(must_have), false, waits});
  }

  /// False: it has not all come yet.
  bool pass_over_news(std::string& input) const {
    const Result<std::optional<size_t>> size = resp::reply_size(input);
    if (!size.ok()) throw Broken("what came is no push message: " + to_string(size.error()));
    if (!*size) return false;
    const std::string_view message = std::string_view(input).substr(0, **size);
    const bool is_news =
        message.starts_with(">3\r\n$4\r\nnews\r\n") || message.starts_with(">2\r\n$11\r\nnews-missed\r\n");
    if (!is_news || !asked_for_news_)
      throw Broken("a message that nobody asked for: " + std::string(message.substr(0, 60)));
    input.erase(0, **size);
    return true;
  }

  void listen(std::string& out, std::deque<Asked>& asked) {
    if (!speaks_version_3_ || random_.chance(1, 3)) {
      say(out, asked, {"NEWS", "STOP"}, "OK");
      return;
    }
    asked_for_news_ = true;
    switch (random_.below(3)) {
      case 0:
        return say(out, asked, {"NEWS", "START"}, ".");
      case 1:
        return say(out, asked, {"NEWS", "START", "TOPIC", random_.chance(1, 2) ? "own" : "due"}, ".");
      default:
        return say(out, asked, {"NEWS", "START", "OF", "pushed,done", "AFTER", "1.1"}, ".");
    }
  }

  void authenticate(std::string& out, std::deque<Asked>& asked) {
    if (random_.chance(1, 3)) {
      say(out, asked, {"AUTH", "wrong"}, "");
      asked.back().is_refused = true;
      return;
    }
    say(out, asked, {"AUTH", std::string(kSecret)}, "OK");
    is_known_ = true;
  }

  void try_without_token(std::string& out, std::deque<Asked>& asked, const std::string& tag) {
    switch (random_.below(5)) {
      case 0:
        say(out, asked, {"PUSH", "evil", "0", body(), "ID", "evil-" + tag}, "NOAUTH");
        break;
      case 1:
        say(out, asked, {"CANCEL", "safe", fmt::format("safe-{}", random_.below(kSafeJobs))}, "NOAUTH");
        break;
      case 2:
        say(out, asked, {"RESCHEDULE", "safe", "safe-0", "0"}, "NOAUTH");
        break;
      case 3:
        say(out, asked, {"PURGE", "safe"}, "NOAUTH");
        break;
      default:
        say(out, asked, {"EXPORT"}, "NOAUTH");
    }
    asked.back().is_refused = true;
  }

  /// MULTI, some commands, and EXEC or DISCARD; or one that is refused, and with it all of them.
  void transact(std::string& out, std::deque<Asked>& asked, const std::string& tag) {
    say(out, asked, {"MULTI"}, "OK");
    const uint64_t count = random_.between(0, 5);
    for (uint64_t i = 0; i < count; ++i) {
      if (random_.chance(1, 2)) {
        say(out, asked, {"PUSH", "own", "1h", body(), "ID", fmt::format("{}-{}", tag, i)}, "QUEUED");
      } else {
        say(out, asked, {"GET", "big", fmt::format("big-{}", random_.below(kBigJobs))}, "QUEUED");
      }
    }
    if (random_.chance(1, 6)) return say(out, asked, {"DISCARD"}, "OK");
    const bool is_refused = random_.chance(1, 6);
    if (is_refused) {
      say(out, asked, {"NOSUCH" + tag}, tag);
      asked.back().is_refused = true;
    }
    say(out, asked, {"EXEC"}, is_refused ? "EXECABORT" : fmt::format("*{}", count));
    asked.back().is_refused = is_refused;
  }

  void ask_known(std::string& out, std::deque<Asked>& asked, const std::string& tag) {
    if (random_.chance(1, 25)) return transact(out, asked, tag);
    if (random_.chance(1, speaks_version_3_ ? 60 : 15)) {
      speaks_version_3_ = random_.chance(3, 4);
      return say(out, asked, {"HELLO", speaks_version_3_ ? "3" : "2"}, "proto");
    }
    if (random_.chance(1, speaks_version_3_ ? 10 : 200)) return listen(out, asked);
    const std::string big = fmt::format("big-{}", random_.below(kBigJobs));
    switch (random_.below(12)) {
      case 0:
      case 1:
        return say(out, asked, {"PUSH", "own", "1h", body(), "ID", tag}, tag);
      case 2:
      case 3:
      case 4:
        return say(out, asked, {"GET", "big", big}, big);
      case 5:
        return say(out, asked, {"EXPORT", "COUNT", "100"}, "*2");
      case 6:
        return say(out, asked, {"LIST", "big", "delayed"}, "*2");
      case 7:
        return say(out, asked, {"CANCEL", "own", tag}, "unknown");
      case 8:
        return say(out, asked, {"PUSH", "due", "0", body(), "ID", tag}, tag);
      case 9:
        if (random_.chance(1, 4)) return say(out, asked, {"POP", "due", "WAIT", "1s", "AUTOACK"}, "*");
        return say(out, asked, {"POP", "due", "COUNT", "5", "AUTOACK"}, "*");
      case 10:
        return say(out, asked, {"POP", "large", "LEASE", "100ms"}, "*");
      default:
        return say(out, asked, {"ECHO", tag}, tag);
    }
  }

  bool speaks_version_3_ = false;  ///< from what was asked last
};

}  // namespace

std::unique_ptr<Talker> make_resp_talker(Random& random, std::string prefix, bool needs_token) {
  return std::make_unique<RespTalker>(random, std::move(prefix), needs_token);
}

}  // namespace delayq::connections
