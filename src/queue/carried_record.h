#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace delayq {

/// What of a Kafka record travels with its job besides the value, which is the job's body: so a record that
/// is only delayed leaves as it came. Stored as JobOptions::carried. The views belong to the caller, or to
/// the bytes that were decoded.
struct CarriedRecord {
  struct Header {
    std::string_view name;
    std::optional<std::string_view> value;

    bool operator==(const Header&) const = default;
  };

  std::optional<std::string_view> key;
  bool is_tombstone = false;  ///< the record had no value, which is not an empty value
  std::vector<Header> headers;

  bool operator==(const CarriedRecord&) const = default;
};

/// Bounds of what is carried. The options of a job are stored in at most 64 KiB (journal-format.md).
inline constexpr size_t kCarriedBytes = size_t{32} << 10;  ///< encoded
inline constexpr size_t kCarriedHeaders = 1'000;

/// Appends MessagePack to `out`: some bytes even for a record without key and headers, so that it can be told
/// from a job that was no record. kTooLarge, and `out` is unchanged, when it exceeds the bounds.
Status encode_carried_record(const CarriedRecord& record, std::string& out);

/// Returns nullopt for bytes that are not such a record.
std::optional<CarriedRecord> decode_carried_record(std::string_view bytes);

}  // namespace delayq
