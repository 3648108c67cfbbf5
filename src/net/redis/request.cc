#include "net/redis/request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <string>
#include <utility>

#include <openssl/evp.h>

#include "core/encoding.h"
#include "resp/writer.h"

namespace delayq::net::redis {

const KnownScript& ScriptBook::know(const Script& script) {
  const auto [place, is_new] = scripts_.try_emplace(script.source.data());
  if (is_new) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    EVP_Digest(script.source.data(), script.source.size(), digest.data(), &size, EVP_sha1(), nullptr);
    place->second = {script.source, to_hex({reinterpret_cast<const char*>(digest.data()), size})};
  }
  return place->second;
}

Request make_command(std::span<const std::string_view> words, Answer answer) {
  Request request;
  request.words = words.size();
  resp::Writer writer(request.body, resp::Version::k2);
  for (const std::string_view word : words) writer.bulk(word);
  request.answer = std::move(answer);
  return request;
}

Request make_internal(std::initializer_list<std::string_view> words, Answer answer) {
  Request request = make_command({words.begin(), words.size()}, std::move(answer));
  request.is_internal = true;
  return request;
}

Request make_run(const KnownScript& script, std::span<const std::string_view> keys,
                 std::span<const std::string_view> arguments, Answer answer) {
  Request request;
  request.words = 3 + keys.size() + arguments.size();
  request.script = &script;
  size_t size = 0;
  for (const std::string_view key : keys) size += key.size() + 16;
  for (const std::string_view argument : arguments) size += argument.size() + 16;
  request.body.reserve(size);
  resp::Writer writer(request.body, resp::Version::k2);
  writer.bulk(std::to_string(keys.size()));
  for (const std::string_view key : keys) writer.bulk(key);
  for (const std::string_view argument : arguments) writer.bulk(argument);
  request.answer = std::move(answer);
  return request;
}

void append(std::string& out, const Request& request, bool with_source) {
  resp::Writer writer(out, resp::Version::k2);
  writer.array(request.words);
  if (request.script != nullptr) {
    writer.bulk(with_source ? "EVAL" : "EVALSHA");
    writer.bulk(with_source ? request.script->source : request.script->sha1);
  }
  out += request.body;
}

namespace {

/// Gives all the latest of their deadlines, so that none overtakes one that must wait.
void wait_together(std::vector<Request>& requests) {
  Loop::Steady not_before{};
  Loop::Steady give_up{};
  for (const Request& request : requests) {
    not_before = std::max(not_before, request.not_before);
    give_up = std::max(give_up, request.give_up);
  }
  for (Request& request : requests) {
    request.not_before = not_before;
    request.give_up = give_up;
  }
}

}  // namespace

void SlotOrder::stop(Request request) {
  const uint16_t lane = request.lane;
  stopped_[lane].refused.push_back(std::move(request));
}

void SlotOrder::hold(Request request) { stopped_.at(request.lane).held.push_back(std::move(request)); }

std::vector<Request> SlotOrder::resume(uint16_t lane) {
  const auto found = stopped_.find(lane);
  std::vector<Request>& refused = found->second.refused;
  if (refused.empty()) {
    std::vector<Request> held = std::move(found->second.held);
    stopped_.erase(found);
    return held;
  }
  // Two nodes may have refused them, so they come back in any order.
  std::sort(refused.begin(), refused.end(),
            [](const Request& a, const Request& b) { return a.number < b.number; });
  const auto end = std::find_if(refused.begin(), refused.end(), [&](const Request& request) {
    return request.to != refused.front().to || request.is_asking != refused.front().is_asking;
  });
  std::vector<Request> next(std::make_move_iterator(refused.begin()), std::make_move_iterator(end));
  refused.erase(refused.begin(), end);
  wait_together(next);
  return next;
}

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
