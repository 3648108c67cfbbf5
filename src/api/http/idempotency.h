#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <absl/container/flat_hash_map.h>

#include "api/http/dialect.h"
#include "core/time.h"
#include "core/token.h"

namespace delayq::http {

/// A digest of all that a request says, computed while its body arrives.
class RequestDigest {
 public:
  RequestDigest(std::string_view target, std::string_view content_type);
  ~RequestDigest();
  RequestDigest(RequestDigest&&) noexcept;
  RequestDigest& operator=(RequestDigest&&) noexcept;

  void add(std::string_view piece);
  /// To be called once, at the end.
  Sha256 finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Answers that were given to requests with an Idempotency-Key, so that the same request, sent again because
/// its answer was lost, gets the same answer and does nothing. In memory, within bounds: the oldest are
/// forgotten first.
class IdempotencyBook {
 public:
  struct Limits {
    Millis keep = std::chrono::hours{24};
    size_t bytes = size_t{64} << 20;
  };

  explicit IdempotencyBook(Limits limits) : limits_(limits) {}
  IdempotencyBook() : IdempotencyBook(Limits{}) {}

  struct Note;
  /// A request that is running, as long as its claim exists. When the claim is destroyed without finish(),
  /// the request is forgotten: it has no answer, and the same request may run again.
  using Claim = std::shared_ptr<Note>;

  enum class Outcome : uint8_t {
    kNew,      ///< the caller owns `claim`
    kRunning,  ///< the same request is being worked on
    kAnother,  ///< the key was used for another request
    kKnown,    ///< `answer` is the earlier answer
  };
  struct Found {
    Outcome outcome = Outcome::kNew;
    const Response* answer = nullptr;  ///< until the next call
    Claim claim = nullptr;
  };

  /// The name of a key: the same key of another caller has another name.
  static std::string name_of(std::string_view caller, std::string_view key);

  /// Without a digest, because the request's body has not arrived yet, kAnother cannot be detected. Then the
  /// claim must be given its digest before finish().
  Found begin(Moment now, const std::string& name, const std::optional<Sha256>& digest);
  static void set_digest(const Claim& claim, const Sha256& digest);
  void finish(const Claim& claim, Response answer);
  /// Forgets the key: the request had no effect, so a retry may run.
  void abandon(const Claim& claim);

  size_t size() const { return notes_.size(); }
  size_t bytes() const { return bytes_; }

 private:
  struct Age {
    Moment begun{};
    uint64_t number = 0;
    std::string name;
  };
  void forget_old(Moment now);
  void forget(const std::string& name);

  Limits limits_;
  absl::flat_hash_map<std::string, Claim> notes_;
  std::deque<Age> ages_;  ///< in the order in which they began; some are gone already
  uint64_t last_number_ = 0;
  size_t bytes_ = 0;
};

}  // namespace delayq::http
