#include "net/redis/refusal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace delayq::net::redis {

namespace {

struct Row {
  std::string_view code;  ///< the first word of the reply
  Refusal refusal;
};

constexpr std::array kRows{
    Row{"NOSCRIPT", Refusal::kNoScript},
    Row{"MOVED", Refusal::kMoved},
    Row{"ASK", Refusal::kAsk},
    Row{"TRYAGAIN", Refusal::kTryAgain},
    Row{"CLUSTERDOWN", Refusal::kTryAgain},
    Row{"LOADING", Refusal::kTryAgain},
    Row{"READONLY", Refusal::kNotMaster},
    Row{"OOM", Refusal::kOutOfMemory},
    Row{"MASTERDOWN", Refusal::kNotNow},
    Row{"BUSY", Refusal::kNotNow},
    Row{"MISCONF", Refusal::kNotNow},
    Row{"NOREPLICAS", Refusal::kNotNow},
    Row{"NOAUTH", Refusal::kNotNow},
    Row{"NOPERM", Refusal::kNotNow},
    Row{"WRONGPASS", Refusal::kNotNow},
    Row{"UNBLOCKED", Refusal::kNotNow},
};

std::optional<uint16_t> number(std::string_view text) {
  uint16_t value = 0;
  const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Refusal refusal_of(std::string_view text) {
  const std::string_view code = text.substr(0, text.find(' '));
  const auto* const row =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& r) { return r.code == code; });
  return row != kRows.end() ? row->refusal : Refusal::kFinal;
}

Error error_of(std::string_view text) {
  ErrorCode code = ErrorCode::kUnavailable;
  if (const Refusal refusal = refusal_of(text); refusal == Refusal::kFinal) {
    code = ErrorCode::kInvalid;
  } else if (refusal == Refusal::kOutOfMemory) {
    code = ErrorCode::kOverloaded;
  }
  return {code, "redis", std::string(text), {}};
}

std::optional<Redirection> redirection_of(std::string_view text, const Address& asked) {
  const size_t first = text.find(' ');
  const size_t second = first == std::string_view::npos ? first : text.find(' ', first + 1);
  const size_t colon = text.rfind(':');
  if (second == std::string_view::npos || colon == std::string_view::npos || colon <= second)
    return std::nullopt;
  const auto slot = number(text.substr(first + 1, second - first - 1));
  const auto port = number(text.substr(colon + 1));
  if (!slot || *slot > 16383 || !port || *port == 0) return std::nullopt;
  const std::string_view host = text.substr(second + 1, colon - second - 1);
  const bool is_named = !host.empty() && host != "?";
  return Redirection{*slot, {is_named ? std::string(host) : asked.host, *port}};
}

}  // namespace delayq::net::redis
