#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include <absl/container/flat_hash_map.h>

#include "api/http/response.h"
#include "core/time.h"

namespace delayq::http {

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

  enum class Outcome : uint8_t {
    kNew,      ///< noted as running: finish() or abandon() it
    kRunning,  ///< the same request is being worked on
    kAnother,  ///< the key was used for another request
    kKnown,    ///< `answer` is what it was
  };
  struct Found {
    Outcome outcome = Outcome::kNew;
    const Response* answer = nullptr;  ///< until the next call
  };

  /// `key` names the caller as well; `fingerprint` is a hash of all that the request says.
  Found begin(Moment now, const std::string& key, uint64_t fingerprint);
  void finish(const std::string& key, Response answer);
  /// It came to nothing that must not happen twice.
  void abandon(const std::string& key);

  size_t size() const { return notes_.size(); }
  size_t bytes() const { return bytes_; }

 private:
  struct Note {
    uint64_t fingerprint = 0;
    uint64_t number = 0;
    bool is_running = true;
    size_t bytes = 0;
    std::unique_ptr<Response> answer;
  };
  struct Age {
    Moment begun{};
    uint64_t number = 0;
    std::string key;
  };
  void forget_old(Moment now);

  Limits limits_;
  absl::flat_hash_map<std::string, Note> notes_;
  std::deque<Age> ages_;  ///< in the order in which they began; some are gone already
  uint64_t last_number_ = 0;
  size_t bytes_ = 0;
};

}  // namespace delayq::http
