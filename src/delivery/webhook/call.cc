#include "delivery/webhook/call.h"

#include <algorithm>
#include <array>

#include <curl/curl.h>
#include <fmt/format.h>

#include "core/encoding.h"
#include "core/job.h"
#include "core/limits.h"
#include "core/moment.h"
#include "core/siphash.h"
#include "core/text.h"
#include "json/reader.h"
#include "json/writer.h"
#include "queue/job_headers.h"

namespace delayq::webhook {

namespace {

constexpr std::chrono::seconds kLongestRetryDelay = std::chrono::days{365};
constexpr size_t kLongestDate = 64;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f; });
}

}  // namespace

void HeaderLines::add(std::string_view name, std::string_view value) {
  if (!value.empty()) add_even_empty(name, value);
}

void HeaderLines::add_even_empty(std::string_view name, std::string_view value) {
  // A colon would end the name.
  if (name.empty() || name.find_first_of(": ;") != std::string_view::npos || has_control_character(name) ||
      has_control_character(value)) {
    is_valid_ = false;
    return;
  }
  lines_.append(name);
  if (value.empty()) {
    lines_ += ';';
  } else {
    lines_.append(": ").append(value);
  }
  lines_ += '\0';
}

std::optional<std::string_view> HeaderLines::find(std::string_view name) const {
  std::string_view rest = lines_;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\0'));
    if (line.starts_with(name) && line.substr(name.size()).starts_with(": "))
      return line.substr(name.size() + 2);
    rest.remove_prefix(line.size() + 1);
  }
  return std::nullopt;
}

Millis RetryAfter::from(Moment now) const {
  if (delay) return *delay;
  return at ? std::max(*at - now, Millis::zero()) : Millis::zero();
}

std::optional<RetryAfter> parse_retry_after(std::string_view value) {
  value = trimmed(value, " \t");
  if (value.empty()) return std::nullopt;
  RetryAfter result;
  if (std::all_of(value.begin(), value.end(), is_digit)) {
    std::chrono::seconds delay{0};
    for (const char c : value)
      delay = std::min(delay * 10 + std::chrono::seconds{c - '0'}, kLongestRetryDelay);
    result.delay = delay;
    return result;
  }
  // All three forms begin with the name of a day; curl would accept other texts too, and guess.
  const bool is_date = value.size() <= kLongestDate && value.front() >= 'A' && value.front() <= 'Z';
  const time_t seconds = is_date ? curl_getdate(std::string(value).c_str(), nullptr) : -1;
  if (seconds < 0) return std::nullopt;
  result.at = Moment{std::chrono::seconds{seconds}};
  return result;
}

CallClass class_of(const CallResult& result) {
  switch (result.error) {
    case CallError::kNone: {
      const int hundreds = result.status / 100;
      if (hundreds < 1 || hundreds > 5) return CallClass::kOther;
      return static_cast<CallClass>(hundreds - 1);
    }
    case CallError::kRefusedAddress:
      return CallClass::kRefused;
    case CallError::kResolve:
      return CallClass::kResolve;
    case CallError::kConnect:
      return CallClass::kConnect;
    case CallError::kTls:
      return CallClass::kTls;
    case CallError::kTimeout:
      return CallClass::kTimeout;
    case CallError::kBadCall:
    case CallError::kBroken:
    case CallError::kNoRoom:
      break;
  }
  return CallClass::kOther;
}

namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kBytes = "application/octet-stream";
constexpr SipKey kMessageKey{0x64656c617971206d, 0x6573736167652069};
constexpr size_t kUsualHeaderBytes = 600;

/// Text for a header line, as in the HTTP binding of CloudEvents: the quote, the percent sign and everything
/// that is not visible ASCII become %XX.
std::string header_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f && c != '"' && c != '%') {
      out += c;
    } else {
      out += '%';
      out += to_hex({&c, 1});
    }
  }
  return out;
}

/// A job that was pushed as JSON has no content type.
std::string_view type_of(const Job& job, const JobOptions& options) {
  if (!options.content_type.empty()) return options.content_type;
  return json::parse(job.body).ok() ? kJson : kBytes;
}

void add_event(Call& call, const Job& job, std::string_view id) {
  call.headers.add("ce-specversion", "1.0");
  call.headers.add("ce-id", id);
  call.headers.add("ce-source", "/delayq/topics/" + header_text(job.topic));
  call.headers.add("ce-type", "delayq.job.due");
  call.headers.add("ce-subject", header_text(job.id));
  call.headers.add("ce-time", format_moment(job.due));
}

/// The form in the callback API's document.
std::string callback_api_body(const Job& job, std::string_view url) {
  std::string text;
  json::Writer json(text);
  json.begin_object().key("topic").text(job.topic).key("id").text(job.id);
  json.key("delay").number(delay_seconds(job));
  json.key("callback").text(url).key("body");
  if (const Result<json::Slice> value = json::parse(job.body); value.ok()) {
    json.raw(value->text);
  } else {
    json.text(job.body);
  }
  json.end_object();
  return text;
}

// ---- the answer

/// Of the answer, kept with the job.
constexpr size_t kShownBytes = 200;
constexpr std::string_view kSpace = " \t\r\n";

/// Removes what the queue would refuse from a text that comes from elsewhere.
std::string presentable(std::string text) {
  text.resize(std::min(text.size(), Limits::kReasonBytes));
  if (check_reason(text)) return text;
  for (char& c : text) {
    if (c < 0x20 || c > 0x7e) c = c == '\n' || c == '\t' ? c : '?';
  }
  return text;
}

std::string text_of(const CallResult& result) {
  const int64_t took = std::chrono::round<Millis>(result.took).count();
  if (!result.is_answered())
    return presentable(fmt::format("{} after {} ms: {}", name_of(result.error), took, result.error_text));
  std::string_view answer = trimmed(result.answer, kSpace);
  const bool is_cut = result.is_answer_cut || answer.size() > kShownBytes;
  answer = answer.substr(0, kShownBytes);
  if (answer.empty()) return fmt::format("{} in {} ms", result.status, took);
  return presentable(fmt::format("{} in {} ms: {}{}", result.status, took, answer, is_cut ? "..." : ""));
}

bool is_host_failure(const CallResult& result) {
  switch (result.error) {
    case CallError::kNone:
      return result.status >= 502 && result.status <= 504;
    case CallError::kBadCall:
    case CallError::kNoRoom:
      return false;
    default:
      return true;
  }
}

bool is_success(const CallResult& result, CallbackFormat format) {
  if (result.status < 200 || result.status > 299) return false;
  return format != CallbackFormat::kCallbackApi ||
         (trimmed(result.answer, kSpace) == "ok" && !result.is_answer_cut);
}

}  // namespace

CallRoute route_of(const JobOptions& options, const EffectiveSettings& topic) {
  CallRoute route;
  route.is_jobs_own = !options.callback.empty();
  route.url = route.is_jobs_own ? options.callback : std::string_view(topic.callback);
  route.format = options.format.value_or(topic.callback_format);
  route.method = options.method.empty() ? std::string_view(topic.callback_method) : options.method;
  if (route.method.empty()) route.method = route.format == CallbackFormat::kCallbackApi ? "PUT" : "POST";
  if (route.is_jobs_own) {
    route.headers = parse_header_lines(options.callback_headers);
  } else {
    for (const std::string& line : topic.callback_headers) {
      if (const auto header = parse_header_line(line)) route.headers.push_back(*header);
    }
  }
  return route;
}

std::string message_id(const Job& job) {
  std::string key;
  key.reserve(job.topic.size() + job.id.size() + 10);
  key.append(job.topic) += '\0';  // a topic has no such byte
  key.append(job.id);
  const int64_t pushed = to_unix_ms(job.pushed);
  key.append(reinterpret_cast<const char*>(&pushed), sizeof pushed);
  const Hash128 hash = siphash128(kMessageKey, key);
  return "msg_" + to_hex({reinterpret_cast<const char*>(&hash), sizeof hash});
}

Call make_call(const Job& job, const JobOptions& options, const CallRoute& route, signing::Signer& signer,
               Moment now) {
  Call call;
  call.url = route.url;
  call.method = route.method;
  const bool is_callback_api = route.format == CallbackFormat::kCallbackApi;
  call.body = is_callback_api ? callback_api_body(job, route.url) : std::string(job.body);
  call.headers.reserve(kUsualHeaderBytes);
  call.headers.add("content-type", is_callback_api ? kJson : type_of(job, options));
  const std::string id = message_id(job);
  call.headers.add(signing::kIdHeader, id);
  call.headers.add(signing::kTimestampHeader, std::to_string(to_unix_seconds(now)));
  if (signer.has_secrets()) call.headers.add(signing::kSignatureHeader, signer.sign({id, now, call.body}));
  if (route.format == CallbackFormat::kCloudEvents) add_event(call, job, id);
  call.headers.add("delayq-topic", header_text(job.topic));
  call.headers.add("delayq-job-id", header_text(job.id));
  call.headers.add("delayq-attempt", std::to_string(job.attempts));
  call.headers.add("delayq-due", format_moment(job.due));
  // A record that came from Kafka may have any name, and an imported job one that is reserved by now.
  for (const JobHeader& header : visible_headers(options.headers)) {
    const auto is_same = [&header](const JobHeader& each) { return is_same_header(each.name, header.name); };
    if (is_reserved_header(header.name) || std::any_of(route.headers.begin(), route.headers.end(), is_same))
      continue;
    call.headers.add_even_empty(header.name, header.value);
  }
  for (const JobHeader& header : route.headers) call.headers.add(header.name, header.value);
  return call;
}

CallOutcome outcome_of(const CallResult& result, CallbackFormat format, Moment now) {
  CallOutcome outcome;
  outcome.text = text_of(result);
  outcome.host_failed = is_host_failure(result);
  if (!result.is_answered()) return outcome;
  if (is_success(result, format)) {
    outcome.fate = CallFate::kDone;
  } else if (result.status == 410) {
    outcome.fate = CallFate::kDead;
  } else if (result.retry_after && (result.status == 429 || result.status == 503)) {
    outcome.retry_after = std::min(result.retry_after->from(now), kLongestRetryAfter);
  }
  return outcome;
}

}  // namespace delayq::webhook
