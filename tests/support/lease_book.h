#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/requests.h"

namespace delayq::support {

/// The leases that one engine gave out, numbered in hand-over order. Two engines that agree give out the same
/// leases by number, whatever their tokens look like.
class LeaseBook {
 public:
  void add(std::string topic, std::string lease) {
    leases_.push_back({std::move(topic), std::move(lease), false});
  }

  /// The engine reported its expiry.
  void mark_expired(size_t number) { leases_[number].expired = true; }
  /// It was extended after that.
  void unmark_expired(size_t number) { leases_[number].expired = false; }
  bool is_expired(size_t number) const { return leases_[number].expired; }

  size_t size() const { return leases_.size(); }
  LeaseRef ref(size_t number) const { return {leases_[number].topic, leases_[number].lease}; }

  std::optional<size_t> number_of(std::string_view topic, std::string_view lease) const {
    for (size_t number = leases_.size(); number-- > 0;) {
      if (leases_[number].lease == lease && leases_[number].topic == topic) return number;
    }
    return std::nullopt;
  }

  /// The lease that was given out `back` leases before the latest one.
  std::optional<size_t> recent(size_t back) const {
    if (back >= leases_.size()) return std::nullopt;
    return leases_.size() - 1 - back;
  }

  /// The same among the expired leases.
  std::optional<size_t> recent_expired(size_t back) const {
    for (size_t number = leases_.size(); number-- > 0;) {
      if (leases_[number].expired && back-- == 0) return number;
    }
    return std::nullopt;
  }

 private:
  struct Lease {
    std::string topic;
    std::string lease;
    bool expired = false;
  };

  std::vector<Lease> leases_;
};

}  // namespace delayq::support
