#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace delayq::journal {

/// A lease as consumers get it: the job's number and the number of the lease, which is unique in
/// the directory forever.
struct LeaseNumber {
  uint64_t seq = 0;
  uint64_t lease = 0;

  bool operator==(const LeaseNumber&) const = default;
};

/// 23 letters and digits.
using LeaseText = std::array<char, 23>;
LeaseText format_lease(const LeaseNumber& number);
std::optional<LeaseNumber> parse_lease(std::string_view text);

}  // namespace delayq::journal
