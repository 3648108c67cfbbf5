#include "api/access.h"

#include <algorithm>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "core/text.h"
#include "queue/leases.h"

namespace delayq::api {

namespace {

constexpr Millis kSecond{1'000};

/// The same text for no token and for a wrong one: an attacker learns nothing from it.
Error unauthorized() { return {ErrorCode::kUnauthorized, {}, "a valid token is needed", {}}; }

std::string names_of(Scopes scopes) {
  std::string names;
  for (size_t i = 0; i < kScopeNames.size(); ++i) {
    if ((scopes & only(static_cast<Scope>(i))) == 0) continue;
    if (!names.empty()) names += " or ";
    names += kScopeNames[i];
  }
  return names;
}

}  // namespace

Sha256 hash_secret(std::string_view secret) {
  Sha256 digest{};
  SHA256(reinterpret_cast<const unsigned char*>(secret.data()), secret.size(), digest.data());
  return digest;
}

void Access::replace(std::vector<Token> tokens) {
  std::vector<std::shared_ptr<Credential>> now;
  for (Token& token : tokens) {
    const auto before = std::find_if(credentials_.begin(), credentials_.end(), [&](const auto& each) {
      return each->token.name == token.name && each->token.sha256 == token.sha256;
    });
    now.push_back(before == credentials_.end() ? std::make_shared<Credential>() : *before);
    now.back()->token = std::move(token);
  }
  for (const auto& before : credentials_) {
    before->is_revoked = std::find(now.begin(), now.end(), before) == now.end();
  }
  credentials_ = std::move(now);
}

Caller Access::identify(std::string_view secret) const {
  const Sha256 given = hash_secret(secret);
  Caller caller;
  for (const auto& each : credentials_) {
    if (CRYPTO_memcmp(given.data(), each->token.sha256.data(), given.size()) == 0) caller.credential_ = each;
  }
  return caller;
}

Status Access::check_scope(const Caller& caller, Scopes scopes) const {
  if (is_open()) return {};
  if (!caller.is_known()) return unauthorized();
  const Token& token = caller.credential_->token;
  if (token.has_any(scopes)) return {};
  return Error{ErrorCode::kForbidden,
               {},
               fmt::format("the token {} has no scope {}", quote(token.name), names_of(scopes)),
               {}};
}

Status Access::check(const Caller& caller, Scopes scopes, std::string_view topic) const {
  if (is_open()) return {};
  if (Status status = check_scope(caller, scopes); !status.ok()) return status;
  if (covers(caller, topic)) return {};
  return Error{
      ErrorCode::kForbidden, {}, fmt::format("the token {} is not for this topic", quote(caller.name())), {}};
}

Status Access::check_all(const Caller& caller, Scopes scopes) const {
  if (is_open()) return {};
  if (Status status = check_scope(caller, scopes); !status.ok()) return status;
  if (caller.credential_->token.covers_all()) return {};
  return Error{
      ErrorCode::kForbidden,
      {},
      fmt::format("this is about all topics, and the token {} is only for some", quote(caller.name())),
      {}};
}

Status Access::check_lease(const Caller& caller, Scopes scopes, std::string_view lease) const {
  return check(caller, scopes, topic_of_lease(lease));
}

bool Access::covers(const Caller& caller, std::string_view topic) const {
  return is_open() || (caller.is_known() && caller.credential_->token.covers(topic));
}

bool Access::covers_all(const Caller& caller) const {
  return is_open() || (caller.is_known() && caller.credential_->token.covers_all());
}

TopicPatterns Access::topics_of(const Caller& caller) const {
  if (is_open()) return kAllTopics;
  return caller.is_known() ? TopicPatterns(caller.credential_->token.topics) : TopicPatterns();
}

std::vector<std::string> Access::patterns_of(const Caller& caller) const {
  if (covers_all(caller)) return {};
  const TopicPatterns topics = topics_of(caller);
  if (topics.empty()) return {std::string()};
  return {topics.begin(), topics.end()};
}

const Token* Access::token_of(const Caller& caller) const {
  return is_open() || !caller.is_known() ? nullptr : &caller.credential_->token;
}

Status Access::check_unique(const Caller& caller) const {
  if (covers_all(caller)) return {};
  return about_field(
      "unique",
      Error{ErrorCode::kForbidden,
            {},
            fmt::format("unique: would tell which ids there are in topics that the token {} is not for",
                        quote(caller.name()))});
}

Status Access::count_request(const Caller& caller, Moment now) const {
  if (is_open() || !caller.is_known()) return {};
  Credential& credential = *caller.credential_;
  const Rate rate{credential.token.requests_per_second, kSecond};
  if (rate.count == 0 || credential.requests.take(rate, now, 1) == 1) return {};
  return Error{
      ErrorCode::kOverloaded,
      {},
      fmt::format("the token {} allows {} requests a second", quote(credential.token.name), rate.count),
      std::max(Millis{1}, credential.requests.next_token(rate, now) - now)};
}

Access::WaiterPlace& Access::WaiterPlace::operator=(WaiterPlace&& other) noexcept {
  leave();
  credential_ = std::move(other.credential_);
  return *this;
}

void Access::WaiterPlace::leave() {
  if (credential_ != nullptr) --credential_->waiters;
  credential_.reset();
}

Result<Access::WaiterPlace> Access::take_waiter_place(const Caller& caller) const {
  WaiterPlace place;
  if (is_open() || !caller.is_known()) return place;
  Credential& credential = *caller.credential_;
  if (credential.token.waiters != 0 && credential.waiters >= credential.token.waiters) {
    return Error{ErrorCode::kOverloaded,
                 {},
                 fmt::format("the token {} allows {} pops that wait at the same time",
                             quote(credential.token.name), credential.token.waiters),
                 kSecond};
  }
  ++credential.waiters;
  place.credential_ = caller.credential_;
  return place;
}

}  // namespace delayq::api
