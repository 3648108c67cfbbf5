#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/token.h"
#include "queue/topics.h"

namespace delayq::api {

/// The hash of a token's secret; the secret itself is not kept.
Sha256 hash_secret(std::string_view secret);

/// A token in use: what it allows, and how much of that is being used. It lives as long as it is referred to.
/// `is_revoked` is set when the configuration no longer has the token.
struct Credential {
  Token token;
  TokenBucket requests;
  uint32_t waiters = 0;
  bool is_revoked = false;
};

/// The client of a request. Without a credential it is unknown: it may do everything where no tokens are
/// configured, and nothing where there are.
class Caller {
 public:
  Caller() = default;

  bool is_known() const { return credential_ != nullptr && !credential_->is_revoked; }
  std::string_view name() const {
    return is_known() ? std::string_view(credential_->token.name) : std::string_view();
  }

 private:
  friend class Access;
  std::shared_ptr<Credential> credential_;
};

/// Which topics a verb is about.
enum class Reach : uint8_t {
  kNone,   ///< none: about the server, or the verb itself checks each topic
  kTopic,  ///< the one that is named first
  kAll,    ///< any: by id or group alone, or of all together
};

/// Decides what a caller may do. A server has one, and both APIs ask it before every verb.
class Access {
 public:
  explicit Access(std::vector<Token> tokens = {}) { replace(std::move(tokens)); }

  /// Replaces the tokens, after the configuration was read again. A connected client may do what its token
  /// still allows. A client whose token is gone, or has another secret, is unknown from now on.
  void replace(std::vector<Token> tokens);
  /// No tokens are configured: every caller may do everything.
  bool is_open() const { return credentials_.empty(); }

  /// The caller with this secret, or an unknown one. Takes the same time for every secret of the same length,
  /// right or wrong: all hashes are compared, and each to its end.
  Caller identify(std::string_view secret) const;

  /// Whether the caller may do something that needs one of `scopes`, to this topic; kUnauthorized if unknown,
  /// kForbidden when its token is for something else.
  Status check(const Caller& caller, Scopes scopes, std::string_view topic) const;
  /// The same for a verb about all topics, or about no particular one.
  Status check_all(const Caller& caller, Scopes scopes) const;
  Status check_scope(const Caller& caller, Scopes scopes) const;
  /// The same for the topic of a lease.
  Status check_lease(const Caller& caller, Scopes scopes, std::string_view lease) const;
  bool covers(const Caller& caller, std::string_view topic) const;
  bool covers_all(const Caller& caller) const;
  /// The topics that the caller may use. Lives until the tokens are replaced.
  TopicPatterns topics_of(const Caller& caller) const;
  /// The same to keep; empty: all. One that may see none gets a pattern that no topic has.
  std::vector<std::string> patterns_of(const Caller& caller) const;
  /// What the caller may do; null where no tokens are configured, and for an unknown caller. Lives until the
  /// tokens are replaced.
  const Token* token_of(const Caller& caller) const;
  /// Whether the caller may ask that an id exists in no other topic: the answer tells about all topics.
  Status check_unique(const Caller& caller) const;

  /// Counts a request; kOverloaded when the rate of its token is used up.
  Status count_request(const Caller& caller, Moment now) const;

  /// One of the pops that a token may have waiting; freed by the destructor.
  class WaiterPlace {
   public:
    WaiterPlace() = default;
    WaiterPlace(WaiterPlace&&) = default;
    WaiterPlace& operator=(WaiterPlace&& other) noexcept;
    ~WaiterPlace() { leave(); }

   private:
    friend class Access;
    void leave();
    std::shared_ptr<Credential> credential_;
  };
  Result<WaiterPlace> take_waiter_place(const Caller& caller) const;

 private:
  std::vector<std::shared_ptr<Credential>> credentials_;
};

}  // namespace delayq::api
