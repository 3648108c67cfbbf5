#include "queue/job_headers.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/text.h"
#include "queue/msgpack.h"

namespace delayq {

namespace {

/// The stored form is an array: flags, the key (if there is one), then for each header its name and a value
/// or, without one, `false`.
constexpr uint64_t kHasKey = 1;
constexpr uint64_t kIsTombstone = 2;
constexpr uint64_t kIsPushed = 4;  ///< no record: alone, and no header lacks a value
constexpr uint64_t kKnownFlags = kHasKey | kIsTombstone | kIsPushed;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= HeaderLimits::kNameBytes &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; });
}

char folded(char c) {
  if (c == '_' || c == '.') return '-';
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return folded(x) == folded(y); });
}

std::string field_of(std::string_view name) { return fmt::format("headers.{}", name); }

/// What is wrong with a value, or nothing.
std::string_view problem_of(std::string_view value) {
  if (value.starts_with(' ') || value.ends_with(' ')) return "must not begin or end with a space";
  for (std::string_view rest = value; !rest.empty();) {
    const std::optional<char32_t> c = take_code_point(rest);
    if (!c || is_control(*c)) return "must be UTF-8 without control characters";
  }
  return {};
}

bool is_visible(const JobHeader& header) {
  return is_name(header.name) && header.value.size() <= HeaderLimits::kValueBytes &&
         problem_of(header.value).empty();
}

Status check_record(std::string_view encoded, size_t headers) {
  if (headers > HeaderLimits::kRecordHeaders) {
    return Error{ErrorCode::kTooLarge,
                 {},
                 fmt::format("the record has {} headers to carry: at most {} are allowed", headers,
                             HeaderLimits::kRecordHeaders)};
  }
  if (encoded.size() <= HeaderLimits::kRecordBytes) return {};
  return Error{ErrorCode::kTooLarge,
               {},
               fmt::format("the record's key and headers have {} bytes: at most {} can be carried",
                           encoded.size(), HeaderLimits::kRecordBytes)};
}

Status check_header(const JobHeaders::Header& header) {
  if (!is_name(header.name)) {
    return invalid("headers", fmt::format("headers: the name {} must have 1 to {} letters, digits, - _ or .",
                                          quote(header.name), HeaderLimits::kNameBytes));
  }
  const std::string field = field_of(header.name);
  const std::string_view value = header.value.value_or(std::string_view());
  if (value.size() > HeaderLimits::kValueBytes) {
    return invalid(field, fmt::format("{}: the value has {} bytes: at most {} are allowed", field,
                                      value.size(), HeaderLimits::kValueBytes));
  }
  const std::string_view problem = problem_of(value);
  return problem.empty() ? Status{} : invalid(field, fmt::format("{}: the value {}", field, problem));
}

// Names that a job's header may not have in a call, as folded() makes them; with a dash at its end it stands
// for all names that begin so.

/// They prove who calls, so they may be header lines of a callback.
constexpr auto kCredentials =
    std::to_array<std::string_view>({"authorization", "cookie", "x-auth-", "x-api-key"});

constexpr auto kReserved = std::to_array<std::string_view>(
    {// delivery sets them
     "delayq-", "webhook-", "ce-", "user-agent", "host", "date",
     // they describe the body and the answer that is wanted
     "content-", "accept", "accept-", "range", "if-", "expect",
     // of the connection (RFC 9110, 7.6.1), of HTTP/2, of proxies
     "connection", "keep-alive", "te", "trailer", "trailers", "transfer-encoding", "upgrade",
     "http2-settings", "max-forwards", "via", "forwarded", "proxy", "proxy-", "early-data", "alt-svc",
     // they say who calls
     "authentication-info", "www-authenticate", "cookie2", "set-cookie", "set-cookie2", "origin", "referer",
     "sec-", "access-control-", "remote-", "x-remote-", "x-authenticated-", "x-client-cert", "x-client-cert-",
     "ssl-", "x-ssl-",
     // they say where a call came from and what is really asked for
     "x-forwarded", "x-forwarded-", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip",
     "x-original-", "x-rewrite-", "x-http-method", "x-http-method-", "x-method-override"});

}  // namespace

// ---- stored

void encode_job_headers(const JobHeaders& headers, std::string& out) {
  MsgpackWriter writer{out};
  writer.array(static_cast<uint32_t>(1 + headers.key.has_value() + 2 * headers.headers.size()));
  writer.uint((headers.key ? kHasKey : 0) | (headers.is_tombstone ? kIsTombstone : 0) |
              (headers.is_record ? 0 : kIsPushed));
  if (headers.key) writer.text(*headers.key);
  for (const JobHeaders::Header& header : headers.headers) {
    writer.text(header.name);
    if (header.value) {
      writer.text(*header.value);
    } else {
      writer.boolean(false);
    }
  }
}

void encode_job_headers(std::span<const JobHeader> headers, std::string& out) {
  if (headers.empty()) return;
  MsgpackWriter writer{out};
  writer.array(static_cast<uint32_t>(1 + 2 * headers.size()));
  writer.uint(kIsPushed);
  for (const JobHeader& header : headers) {
    writer.text(header.name);
    writer.text(header.value);
  }
}

std::optional<JobHeaders> decode_job_headers(std::string_view bytes) {
  JobHeaders headers;
  MsgpackReader reader{bytes};
  uint32_t items = reader.array();
  if (items == 0) return std::nullopt;
  const uint64_t flags = reader.uint();
  --items;
  if (!reader.ok() || (flags & ~kKnownFlags) != 0) return std::nullopt;
  headers.is_record = (flags & kIsPushed) == 0;
  if (!headers.is_record && flags != kIsPushed) return std::nullopt;
  headers.is_tombstone = (flags & kIsTombstone) != 0;
  if ((flags & kHasKey) != 0) {
    if (items == 0) return std::nullopt;
    headers.key = reader.text();
    --items;
  }
  if (items % 2 != 0) return std::nullopt;
  for (; items > 0 && reader.ok(); items -= 2) {
    JobHeaders::Header header{reader.text(), std::nullopt};
    if (reader.is_text() || !headers.is_record) {
      header.value = reader.text();
    } else if (reader.boolean()) {
      return std::nullopt;
    }
    headers.headers.push_back(header);
  }
  if (!reader.complete()) return std::nullopt;
  return headers;
}

bool are_of_record(std::string_view encoded) {
  MsgpackReader reader{encoded};
  if (reader.array() == 0) return false;
  const uint64_t flags = reader.uint();
  return reader.ok() && (flags & kIsPushed) == 0;
}

// ---- checked

Status check_job_headers(std::string_view encoded) {
  const std::optional<JobHeaders> decoded = decode_job_headers(encoded);
  if (!decoded) return invalid("headers", "headers: these bytes are not the headers of a job");
  const std::vector<JobHeaders::Header>& headers = decoded->headers;
  if (decoded->is_record) return check_record(encoded, headers.size());
  if (headers.size() > HeaderLimits::kHeaders) {
    return invalid("headers", fmt::format("headers: there are {}: at most {} are allowed", headers.size(),
                                          HeaderLimits::kHeaders));
  }
  size_t bytes = 0;
  for (size_t i = 0; i < headers.size(); ++i) {
    if (Status status = check_header(headers[i]); !status) return status;
    bytes += headers[i].name.size() + headers[i].value->size();
    for (size_t before = 0; before < i; ++before) {
      if (!is_same_name(headers[before].name, headers[i].name)) continue;
      const std::string field = field_of(headers[i].name);
      return invalid(field, headers[before].name == headers[i].name
                                ? fmt::format("{}: is given twice", field)
                                : fmt::format("{}: is the same name as {}", field, headers[before].name));
    }
  }
  if (bytes <= HeaderLimits::kAllBytes) return {};
  return invalid("headers", fmt::format("headers: names and values have {} bytes together: at most {} are "
                                        "allowed",
                                        bytes, HeaderLimits::kAllBytes));
}

namespace {

bool is_among(std::span<const std::string_view> reserved_names, std::string_view name) {
  return std::any_of(reserved_names.begin(), reserved_names.end(), [name](std::string_view reserved) {
    return is_same_name(name, reserved) ||
           (reserved.ends_with('-') && is_same_name(name.substr(0, reserved.size()), reserved));
  });
}

/// Of a callback header. The message never has the value: it may be a secret.
Status check_callback_header(std::string_view line) {
  constexpr std::string_view kField = "callback_headers";
  const std::optional<JobHeader> header = parse_header_line(line);
  if (!header)
    return invalid(kField, "callback_headers: each is a line such as \"Authorization: Bearer TOKEN\"");
  if (!is_name(header->name)) {
    return invalid(kField,
                   fmt::format("callback_headers: the name {} must have 1 to {} letters, digits, - _ or .",
                               quote(header->name), HeaderLimits::kNameBytes));
  }
  if (is_among(kReserved, header->name)) {
    return invalid(kField,
                   fmt::format("callback_headers: {} is set by delayq or describes the connection, and "
                               "cannot be given",
                               header->name));
  }
  if (header->value.empty())
    return invalid(kField, fmt::format("callback_headers: {} has no value", header->name));
  const std::string_view problem = problem_of(header->value);
  if (problem.empty()) return {};
  return invalid(kField, fmt::format("callback_headers: the value of {} {}", header->name, problem));
}

}  // namespace

bool is_reserved_header(std::string_view name) {
  return is_among(kReserved, name) || is_among(kCredentials, name);
}

std::optional<JobHeader> parse_header_line(std::string_view line) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  return JobHeader{line.substr(0, colon), trimmed(line.substr(colon + 1), " ")};
}

Status add_header_line(std::string_view line, std::string& lines) {
  if (Status status = check_callback_header(line); !status) return status;
  if (!lines.empty()) lines += '\n';
  lines += line;
  return {};
}

std::vector<JobHeader> parse_header_lines(std::string_view lines) {
  std::vector<JobHeader> headers;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    if (const std::optional<JobHeader> header = parse_header_line(line)) headers.push_back(*header);
  }
  return headers;
}

Status check_callback_headers(const std::vector<std::string>& lines) {
  if (lines.size() > CallbackHeaderLimits::kHeaders) {
    return invalid("callback_headers", fmt::format("callback_headers: there are {}: at most {} are allowed",
                                                   lines.size(), CallbackHeaderLimits::kHeaders));
  }
  size_t bytes = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (Status status = check_callback_header(lines[i]); !status) return status;
    bytes += lines[i].size();
    for (size_t before = 0; before < i; ++before) {
      const std::string_view name = parse_header_line(lines[i])->name;
      if (!is_same_name(parse_header_line(lines[before])->name, name)) continue;
      return invalid("callback_headers", fmt::format("callback_headers: {} is given twice", name));
    }
  }
  if (bytes <= CallbackHeaderLimits::kAllBytes) return {};
  return invalid("callback_headers",
                 fmt::format("callback_headers: they have {} bytes: at most {} are allowed", bytes,
                             CallbackHeaderLimits::kAllBytes));
}

Status check_callback_header_lines(std::string_view lines) {
  std::vector<std::string> each;
  while (!lines.empty()) {
    each.emplace_back(lines.substr(0, lines.find('\n')));
    lines.remove_prefix(std::min(lines.size(), each.back().size() + 1));
  }
  return check_callback_headers(each);
}

Status check_header_names(std::string_view encoded) {
  const std::optional<JobHeaders> decoded = decode_job_headers(encoded);
  if (!decoded || decoded->is_record) return {};
  for (const JobHeaders::Header& header : decoded->headers) {
    if (!is_reserved_header(header.name)) continue;
    const std::string field = field_of(header.name);
    return invalid(field, fmt::format("{}: this header is reserved for the delivery of the job", field));
  }
  return {};
}

bool is_same_header(std::string_view a, std::string_view b) { return is_same_name(a, b); }

// ---- shown

std::vector<JobHeader> visible_headers(std::string_view encoded) {
  std::vector<JobHeader> visible;
  if (encoded.empty()) return visible;
  const std::optional<JobHeaders> decoded = decode_job_headers(encoded);
  if (!decoded) return visible;
  visible.reserve(std::min(decoded->headers.size(), HeaderLimits::kHeaders));
  size_t bytes = 0;
  for (const JobHeaders::Header& header : decoded->headers) {
    if (!header.value) continue;
    const JobHeader one{header.name, *header.value};
    if (!decoded->is_record) {
      visible.push_back(one);
      continue;
    }
    if (!is_visible(one)) continue;
    const auto same = std::find_if(visible.begin(), visible.end(), [&one](const JobHeader& other) {
      return is_same_name(other.name, one.name);
    });
    const size_t replaced = same == visible.end() ? 0 : same->name.size() + same->value.size();
    const size_t after = bytes - replaced + one.name.size() + one.value.size();
    const bool is_full = same == visible.end() && visible.size() >= HeaderLimits::kHeaders;
    if (is_full || after > HeaderLimits::kAllBytes) continue;
    bytes = after;
    if (same == visible.end()) {
      visible.push_back(one);
    } else {
      *same = one;
    }
  }
  return visible;
}

}  // namespace delayq
