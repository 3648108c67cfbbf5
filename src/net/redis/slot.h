#pragma once

#include <cstdint>
#include <string_view>

namespace delayq::net::redis {

inline constexpr uint16_t kSlots = 16384;

/// Where a cluster keeps a key: CRC16 (XMODEM) of its hash tag, which is what stands between the first `{`
/// and the next `}`, unless that is nothing; then of the whole key.
uint16_t slot_of(std::string_view key);

}  // namespace delayq::net::redis
