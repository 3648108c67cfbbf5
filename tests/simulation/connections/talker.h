#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/random.h"

namespace delayq::connections {

/// Jobs that are there from the beginning: large ones in topic "big", which nobody changes, and those of
/// topic "safe", which only unauthorised clients try to change.
inline constexpr uint32_t kBigJobs = 12;
inline constexpr uint32_t kSafeJobs = 5;
inline constexpr std::string_view kSecret = "secret";

/// What must be answered to a request.
struct Asked {
  std::string what;       ///< the request, for messages
  std::string must_have;  ///< a part of the answer; unique where the request can have one of its own
  bool is_refused = false;
  bool may_wait = false;
};

struct Answer {
  bool is_refusal = false;
  std::string text;
  bool is_last = false;  ///< it says so itself
};

/// A client's knowledge of a protocol: makes requests at random, and takes answers apart.
class Talker {
 public:
  /// `prefix` makes the names that it uses its own.
  Talker(Random& random, std::string prefix, bool needs_token)
      : random_(random), prefix_(std::move(prefix)), needs_token_(needs_token) {}
  virtual ~Talker() = default;

  /// Appends a request to `out`, and what must be answered to `asked`.
  virtual void ask(std::string& out, std::deque<Asked>& asked) = 0;
  /// Takes an answer off the front of `input`; none when it has not all come yet. Throws Broken for bytes
  /// that are none.
  virtual std::optional<Answer> take_answer(std::string& input) = 0;
  /// It said that it will say no more.
  bool is_over() const { return is_over_; }
  /// It did not show the token that is asked for when it last could.
  bool is_stranger() const { return needs_token_ && !is_known_; }
  bool needs_token() const { return needs_token_; }
  /// It asked for news of single jobs, which come by themselves.
  bool asked_for_news() const { return asked_for_news_; }

 protected:
  std::string next_tag() { return prefix_ + "-" + std::to_string(++last_tag_); }
  /// Most are short.
  std::string body();

  Random& random_;
  std::string prefix_;
  bool needs_token_;
  bool is_known_ = false;  ///< it has shown its token
  bool is_over_ = false;
  bool asked_for_news_ = false;

 private:
  uint64_t last_tag_ = 0;
};

std::unique_ptr<Talker> make_resp_talker(Random& random, std::string prefix, bool needs_token);
std::unique_ptr<Talker> make_http_talker(Random& random, std::string prefix, bool needs_token);

}  // namespace delayq::connections
