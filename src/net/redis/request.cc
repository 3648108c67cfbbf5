#include "net/redis/request.h"

#include <algorithm>
#include <array>
#include <iterator>
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

}  // namespace delayq::net::redis
