#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/functional/function_ref.h>

#include "delivery/webhook/call.h"

namespace delayq::webhook {

/// Whether a host is called (see HostGate): yes; no, since its last calls failed; one call, to try whether it
/// is back.
enum class Breaker : uint8_t { kClosed, kOpen, kHalfOpen };

/// The state of a host now.
struct HostView {
  Breaker breaker = Breaker::kClosed;
  std::optional<Moment> open_until;  ///< only of one that is open
  uint32_t failures = 0;             ///< in a row
  uint32_t calls = 0;                ///< under way
};

/// A host that was called, as people look at it.
struct HostReport {
  std::string host;      ///< "name:port"
  HostView gate;         ///< its breaker, and its calls under way
  uint64_t waiting = 0;  ///< jobs that wait for a place
  uint64_t calls = 0;    ///< that have ended, since it was first called, like the next two
  uint64_t failed = 0;
  Histogram<28> micros;  ///< how long calls took
  Moment last_call{};
};

/// A call that failed.
struct PastFailure {
  Moment at{};
  std::string topic;
  std::string id;
  std::string host;
  uint32_t attempt = 0;
  bool dead = false;  ///< the receiver wants no more calls for this job
  int status = 0;     ///< zero: there was no answer
  CallError error = CallError::kNone;
  std::chrono::microseconds took{};
};

struct CallbackReport {
  std::vector<HostReport> hosts;
  std::vector<PastFailure> failures;  ///< the last ones first
};

/// Remembers how the calls to each host went, and the last failures. Bounded: of the hosts, the one that was
/// not called for longest is forgotten first. Nothing of a job's body, of an answer or of a URL's path is in
/// it.
class CallBook {
 public:
  static constexpr size_t kMostHosts = 1'000;
  static constexpr size_t kMostFailures = 100;

  void note(Moment now, const std::string& host, const CallResult& result, bool failed);
  void note_failure(PastFailure failure);
  /// The hosts in need of attention first, then the busiest; at most `limit` of them, and of the failures.
  CallbackReport report(absl::FunctionRef<HostView(const std::string& host)> look, size_t limit) const;
  size_t size() const { return hosts_.size(); }

 private:
  struct Entry {
    uint64_t calls = 0;
    uint64_t failed = 0;
    Histogram<28> micros;
    Moment last_call{};
  };

  absl::flat_hash_map<std::string, Entry> hosts_;
  std::deque<PastFailure> failures_;
};

}  // namespace delayq::webhook
