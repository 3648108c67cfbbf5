// Requests with an Idempotency-Key.
#include <fmt/format.h>

#include "api/http/conversation.h"

namespace delayq::http {

namespace {

constexpr size_t kLongestKey = 255;

Error conflict(std::string_view why, Millis retry_after) {
  return about_field("Idempotency-Key",
                     {ErrorCode::kConflict, {}, fmt::format("Idempotency-Key: {}", why), retry_after});
}

}  // namespace

bool Conversation::answer_again(const net::HttpRequest& request) {
  if (!request.idempotency_key || request.method != "POST") return false;
  std::string_view given = *request.idempotency_key;
  // Counted as it was sent, as the description does; a text in quotes is the same key as one without.
  const bool is_too_long = given.size() > kLongestKey;
  if (given.size() >= 2 && given.front() == '"' && given.back() == '"')
    given = given.substr(1, given.size() - 2);
  if (given.empty() || is_too_long) {
    if (comes_in_pieces()) pass_over_body(request);
    refuse_current(
        invalid("Idempotency-Key",
                fmt::format("Idempotency-Key: expected 1 to {} characters, quotes included", kLongestKey)),
        0, {});
    return true;
  }
  std::string name = IdempotencyBook::name_of(caller_.name(), given);
  RequestDigest digest(request.target, request.content_type);
  if (!comes_in_pieces()) {
    digest.add(request.body);
    return answer_found(host_.idempotency.begin(now_, name, digest.finish()));
  }
  // Whether it is the same request is known when the last of its body has come.
  IdempotencyBook::Found found = host_.idempotency.begin(now_, name, std::nullopt);
  if (found.outcome == IdempotencyBook::Outcome::kRunning) {
    pass_over_body(request);
    return answer_found(std::move(found));
  }
  claim_ = found.claim;
  keyed_.emplace(Keyed{std::move(name), std::move(digest), std::move(found.claim)});
  return found.outcome != IdempotencyBook::Outcome::kNew;
}

void Conversation::end_keyed(std::string_view last_piece) {
  Keyed keyed = std::move(*keyed_);
  keyed_.reset();
  keyed.digest.add(last_piece);
  const Sha256 digest = keyed.digest.finish();
  if (keyed.claim != nullptr) return IdempotencyBook::set_digest(keyed.claim, digest);
  IdempotencyBook::Found found = host_.idempotency.begin(now_, keyed.name, digest);
  if (found.outcome == IdempotencyBook::Outcome::kNew) {
    // The answer was forgotten while the body came, and the body is gone.
    host_.idempotency.abandon(found.claim);
    return refuse_current(conflict("the answer has just been forgotten; send it again", Millis{1'000}), 0,
                          {});
  }
  answer_found(std::move(found));
}

bool Conversation::answer_found(IdempotencyBook::Found found) {
  switch (found.outcome) {
    case IdempotencyBook::Outcome::kNew:
      claim_ = std::move(found.claim);
      return false;
    case IdempotencyBook::Outcome::kKnown: {
      Response again = *found.answer;
      again.headers += "Idempotency-Replayed: true\r\n";
      send(reserve(), std::move(again));
      return true;
    }
    case IdempotencyBook::Outcome::kRunning:
      refuse_current(conflict("the first request with this key is still being worked on", Millis{1'000}), 0,
                     {});
      return true;
    case IdempotencyBook::Outcome::kAnother:
      break;
  }
  refuse_current(conflict("was used for another request", {}), 0, {});
  return true;
}

}  // namespace delayq::http
