#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace delayq {

/// The bounds of the headers of one job.
struct HeaderLimits {
  static constexpr size_t kHeaders = 64;
  static constexpr size_t kNameBytes = 100;
  static constexpr size_t kValueBytes = 4'096;
  static constexpr size_t kAllBytes = size_t{16} << 10;  ///< names and values together
  // Of a Kafka record's. The options of a job are stored in at most 64 KiB (journal-format.md).
  static constexpr size_t kRecordHeaders = 1'000;
  static constexpr size_t kRecordBytes = size_t{32} << 10;  ///< key and headers together, encoded
};

/// The bounds of the header lines of a callback.
struct CallbackHeaderLimits {
  static constexpr size_t kHeaders = 16;
  static constexpr size_t kAllBytes = 4'096;  ///< of the lines together
};

/// A header of a job as its producer gives it and its consumer gets it, within HeaderLimits. Two names are
/// the same when they differ only in upper and lower case or in `-`, `_` and `.`, since they become one where
/// headers are variables of an environment.
struct JobHeader {
  std::string_view name;   ///< letters, digits, `-`, `_` and `.`
  std::string_view value;  ///< UTF-8 without control characters; no space at its ends; may be empty

  bool operator==(const JobHeader&) const = default;
};

/// What is stored as JobOptions::headers, encoded: the headers that a job was pushed with; or, of a job that
/// was a Kafka record, the record's key and headers just as they came, so that a record that is only delayed
/// leaves unchanged. The views belong to the caller, or to the bytes that were decoded.
struct JobHeaders {
  struct Header {
    std::string_view name;
    std::optional<std::string_view> value;  ///< only a record has headers without a value

    bool operator==(const Header&) const = default;
  };

  bool is_record = false;
  std::optional<std::string_view> key;  ///< of the record
  bool is_tombstone = false;            ///< the record had no value, which is not an empty value
  std::vector<Header> headers;

  bool operator==(const JobHeaders&) const = default;
};

/// Appends MessagePack to `out`: some bytes even for a record without key and headers, so that it can be told
/// from a job that was no record. Nothing is checked.
void encode_job_headers(const JobHeaders& headers, std::string& out);
/// The same for headers that a job is pushed with. Nothing for none.
void encode_job_headers(std::span<const JobHeader> headers, std::string& out);

/// Returns nullopt for other bytes.
std::optional<JobHeaders> decode_job_headers(std::string_view bytes);

/// Whether these encoded headers are those of a Kafka record.
bool are_of_record(std::string_view encoded);

/// OK when the encoded headers are within their bounds: those of one header and those of all together. An
/// error names the header: "headers.traceparent". A record is kTooLarge above its own bounds.
Status check_job_headers(std::string_view encoded);

/// Whether an HTTP call may not have a header of this name from a job: delayq sets it, the connection or the
/// body is described by it, or receivers take it for proof of who calls or where a call came from.
bool is_reserved_header(std::string_view name);

/// OK when no header has a reserved name. For pushes: what is stored is never refused later because of a
/// name that became reserved.
Status check_header_names(std::string_view encoded);

/// The headers that consumers see: all of those that a job was pushed with; of a record, those that are
/// within the same bounds, of several with the same name the last one. Empty for bytes that are no headers.
std::vector<JobHeader> visible_headers(std::string_view encoded);

// ---- the header lines of a callback, "Authorization: Bearer TOKEN". They are secrets: they are sent with
// calls and shown nowhere else.

/// Whether a line has a colon: its name and its value.
std::optional<JobHeader> parse_header_line(std::string_view line);
/// Adds a line that came from outside to `lines`, with '\n' between them. Refused when it has a line end,
/// which would make two of it, or no name and value.
Status add_header_line(std::string_view line, std::string& lines);
/// Of several lines, with '\n' between them, as JobOptions has them. The views are those of `lines`.
std::vector<JobHeader> parse_header_lines(std::string_view lines);
/// Names are as those of a job's headers. Reserved names are refused, except those that prove who calls. No
/// error has a value in it.
Status check_callback_headers(const std::vector<std::string>& lines);
Status check_callback_header_lines(std::string_view lines);
/// Whether these names mean the same header.
bool is_same_header(std::string_view a, std::string_view b);

}  // namespace delayq
