#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/time.h"

namespace delayq {

/// Everything that can go wrong, as far as a caller can tell the difference.
enum class ErrorCode : uint8_t {
  kInvalid,       ///< the request is malformed or out of range
  kTooLarge,      ///< a body or a batch above its limit
  kConflict,      ///< the id is already waiting or running
  kNotFound,      ///< no such job, topic or group
  kStaleLease,    ///< the lease is not the current one any more
  kOverloaded,    ///< a bound was reached; try again later
  kDiskFull,      ///< the journal's disk has no room for new jobs
  kUnavailable,   ///< the engine cannot work now (journal failed, backend away)
  kStopping,      ///< the server is shutting down
  kUnauthorized,  ///< no or wrong credentials
  kForbidden,     ///< the credentials do not allow this
  kCorrupt,       ///< stored data failed its checksum
  kInternal,      ///< a bug in delayq
};

/// How the APIs report an error code. One row per code, in the order of the enum; every front end uses this
/// table.
struct ErrorTraits {
  ErrorCode code;
  std::string_view name;         ///< stable, in problem documents and logs
  std::string_view resp_prefix;  ///< first word of a RESP error
  int http_status;
  int exit_code;
  bool retryable;  ///< the same request may succeed later without being changed
};

inline constexpr std::array<ErrorTraits, 13> kErrorTable{{
    {ErrorCode::kInvalid, "invalid", "INVALID", 400, 2, false},
    {ErrorCode::kTooLarge, "too_large", "TOOLARGE", 413, 3, false},
    {ErrorCode::kConflict, "conflict", "CONFLICT", 409, 4, false},
    {ErrorCode::kNotFound, "not_found", "NOTFOUND", 404, 5, false},
    {ErrorCode::kStaleLease, "stale_lease", "STALELEASE", 409, 6, false},
    {ErrorCode::kOverloaded, "overloaded", "OVERLOADED", 429, 7, true},
    {ErrorCode::kDiskFull, "disk_full", "DISKFULL", 507, 8, true},
    {ErrorCode::kUnavailable, "unavailable", "UNAVAILABLE", 503, 9, true},
    {ErrorCode::kStopping, "stopping", "STOPPING", 503, 10, true},
    {ErrorCode::kUnauthorized, "unauthorized", "NOAUTH", 401, 11, false},
    {ErrorCode::kForbidden, "forbidden", "NOPERM", 403, 12, false},
    {ErrorCode::kCorrupt, "corrupt", "CORRUPT", 500, 13, false},
    {ErrorCode::kInternal, "internal", "INTERNAL", 500, 14, false},
}};

static_assert(
    [] {
      for (size_t i = 0; i < kErrorTable.size(); ++i) {
        if (kErrorTable[i].code != static_cast<ErrorCode>(i)) return false;
      }
      return kErrorTable.back().code == ErrorCode::kInternal;
    }(),
    "traits_of() indexes kErrorTable by the enum's value");

constexpr const ErrorTraits& traits_of(ErrorCode code) { return kErrorTable[static_cast<size_t>(code)]; }

/// What went wrong, where, and what would be right.
struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string op;        ///< the verb or the step that failed: "push", "journal.commit"
  std::string detail;    ///< a sentence for a person
  Millis retry_after{};  ///< when it is worth trying again; zero: nothing is known about that
  /// Set when the request used an unknown name: the names that exist. They are constants of the program.
  std::optional<std::vector<std::string_view>> known{};
  /// The field of the request that is wrong: "delay", "rate.per" for a member of a member. Empty when the
  /// error is not about one field. Programs read it here; the detail may name the field too, for a person.
  std::string field{};

  bool operator==(const Error&) const = default;
};

/// An Error of kInvalid that is not about one field. `detail` says what would be right.
[[nodiscard]] inline Error invalid(std::string detail) {
  return {ErrorCode::kInvalid, {}, std::move(detail)};
}

/// The same error, about `field`. The detail stays as it is.
[[nodiscard]] inline Error about_field(std::string_view field, Error error) {
  error.field = field;
  return error;
}

/// An Error of kInvalid about `field`. `detail` is the whole sentence: nothing is put in front of it.
[[nodiscard]] inline Error invalid(std::string_view field, std::string detail) {
  return about_field(field, invalid(std::move(detail)));
}

/// The same error, with the name of the verb or step that failed.
[[nodiscard]] inline Error in_verb(std::string_view op, Error error) {
  error.op = op;
  return error;
}

/// "push: conflict: ..." for logs and terminals.
inline std::string to_string(const Error& error) {
  std::string text = error.op;
  if (!text.empty()) text += ": ";
  text += traits_of(error.code).name;
  if (!error.detail.empty()) {
    text += ": ";
    text += error.detail;
  }
  return text;
}

}  // namespace delayq
