#include "delivery/webhook/message.h"

#include "core/encoding.h"
#include "core/job.h"
#include "core/moment.h"
#include "core/siphash.h"
#include "json/reader.h"
#include "json/writer.h"

namespace delayq::webhook {

namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::string_view kBytes = "application/octet-stream";
constexpr SipKey kMessageKey{0x64656c617971206d, 0x6573736167652069};
constexpr size_t kUsualHeaderBytes = 600;

/// Text for a header line, as the HTTP binding of CloudEvents has it: what is not visible ASCII, the quote
/// and the percent sign become %XX.
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

/// A job that came as JSON says nothing of its type.
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

/// As the callback API's document has it.
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

}  // namespace

Route route_of(const JobOptions& options, const EffectiveSettings& topic) {
  Route route;
  route.is_jobs_own = !options.callback.empty();
  route.url = route.is_jobs_own ? options.callback : std::string_view(topic.callback);
  route.format = options.format.value_or(topic.callback_format);
  route.method = options.method.empty() ? std::string_view(topic.callback_method) : options.method;
  if (route.method.empty()) route.method = route.format == CallbackFormat::kCallbackApi ? "PUT" : "POST";
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

Call make_call(const Job& job, const JobOptions& options, const Route& route, signing::Signer& signer,
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
  return call;
}

}  // namespace delayq::webhook
