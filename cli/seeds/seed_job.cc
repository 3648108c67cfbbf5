#include "cli/seeds/seed_job.h"

#include <charconv>
#include <msgpuck.h>

#include "core/moment.h"
#include "core/text.h"
#include "json/writer.h"

namespace delayq::cli::seeds {

std::string line_of(const SeedJob& job, Moment now) {
  std::string line;
  json::Writer json(line);
  json.begin_object().key("topic").text(job.topic).key("id").text(job.id);
  json.key("state").text(job.due > now ? "delayed" : "ready");
  json.key("due_at").text(format_moment(job.due));
  json.key("pushed_at").text(format_moment(job.pushed.value_or(now)));
  json.key("attempts").number(uint64_t{job.attempts});
  json::write_body(json, job.body);
  if (job.max_attempts) json.key("max_attempts").number(uint64_t{*job.max_attempts});
  const auto say = [&json](std::string_view name, const std::string& value) {
    if (!value.empty()) json.key(name).text(value);
  };
  say("backoff", job.backoff);
  say("lease", job.lease);
  say("callback", job.callback);
  say("callback_method", job.callback_method);
  say("callback_format", job.callback_format);
  say("name", job.name);
  json.end_object();
  return line;
}

Result<JsonJob> JsonJob::parse(std::string_view text) {
  JsonJob job;
  const Result<json::Slice> value = json::parse(text, &job.members_);
  if (!value.ok() || value->type != json::Type::kObject)
    return Error{ErrorCode::kCorrupt, {}, "the job is not a JSON object"};
  return job;
}

const json::Slice* JsonJob::find(std::string_view name) const {
  for (const json::Member& member : members_) {
    if (lowered(member.name) == name && member.value.type != json::Type::kNull) return &member.value;
  }
  return nullptr;
}

std::string JsonJob::text(std::string_view name) const {
  const json::Slice* const value = find(name);
  if (value == nullptr) return {};
  if (value->type == json::Type::kNumber) return std::string(value->text);
  if (value->type != json::Type::kString) return {};
  Result<std::string> text = json::text_of(*value);
  return text.ok() ? std::move(*text) : std::string();
}

std::optional<int64_t> JsonJob::number(std::string_view name) const {
  const std::string digits = text(name);
  int64_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, number);
  if (digits.empty() || error != std::errc{} || stop != end) return std::nullopt;
  return number;
}

namespace {

Error corrupt(std::string detail) { return {ErrorCode::kCorrupt, {}, std::move(detail)}; }

/// Items of MessagePack, one after the other. Each is checked by itself before it is read: mp_check() counts
/// the items of a container with an int, so a claim of 2^32 - 1 items makes it stop early.
class Items {
 public:
  explicit Items(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool is_at_end() const { return at_ == end_; }
  bool is_whole() const { return next() != nullptr; }
  /// How many pairs follow; nullopt: it is no map. REQUIRES: is_whole().
  std::optional<uint32_t> take_map() {
    if (mp_typeof(*at_) != MP_MAP) return std::nullopt;
    return mp_decode_map(&at_);
  }
  /// Text, or bytes, which some encoders write instead; anything else is skipped.
  std::optional<std::string> take_text() {
    const char* at = take();
    if (at == nullptr) return std::nullopt;
    uint32_t size = 0;
    const char* text = nullptr;
    if (mp_typeof(*at) == MP_STR) text = mp_decode_str(&at, &size);
    if (text == nullptr && mp_typeof(*at) == MP_BIN) text = mp_decode_bin(&at, &size);
    return text == nullptr ? std::nullopt : std::optional(std::string(text, size));
  }
  std::optional<double> take_number() {
    const char* at = take();
    if (at == nullptr) return std::nullopt;
    switch (mp_typeof(*at)) {
      case MP_UINT:
        return static_cast<double>(mp_decode_uint(&at));
      case MP_INT:
        return static_cast<double>(mp_decode_int(&at));
      case MP_DOUBLE:
        return mp_decode_double(&at);
      case MP_FLOAT:
        return static_cast<double>(mp_decode_float(&at));
      default:
        return std::nullopt;
    }
  }
  /// A key as its digit; some encoders write numbers. '\0' for any other.
  char take_key() {
    if (is_at_end()) return '\0';
    if (mp_typeof(*at_) == MP_UINT) {
      const std::optional<double> number = take_number();
      return number && *number < 10 ? static_cast<char>('0' + static_cast<int>(*number)) : '\0';
    }
    const std::optional<std::string> text = take_text();
    return text && text->size() == 1 ? text->front() : '\0';
  }
  /// Takes the next item; null when there is no complete one, and then nothing is left.
  const char* take() {
    const char* const item = at_;
    const char* const after = next();
    at_ = after == nullptr ? end_ : after;
    return after == nullptr ? nullptr : item;
  }

 private:
  /// Where the item after the next begins; null when the next is not whole.
  const char* next() const {
    const char* after = at_;
    return at_ == end_ || mp_check(&after, end_) != 0 ? nullptr : after;
  }

  const char* at_;
  const char* end_;
};

}  // namespace

Result<PackedJob> unpack_job(std::string_view bytes) {
  Items items(bytes);
  if (!items.is_whole()) return corrupt("the job is not MessagePack");
  const std::optional<uint32_t> pairs = items.take_map();
  if (!pairs) return corrupt("the job is not a map of MessagePack");
  PackedJob job;
  bool has_body = false;
  for (uint32_t i = 0; i < *pairs; ++i) {
    if (items.is_at_end()) return corrupt("the job is not MessagePack: it ends too early");
    switch (items.take_key()) {
      case '1':
        job.topic = items.take_text().value_or("");
        break;
      case '2':
        job.id = items.take_text().value_or("");
        break;
      case '3':
        job.delay = items.take_number();
        break;
      case '4':
        job.exec_time = items.take_number();
        break;
      case '5': {
        std::optional<std::string> body = items.take_text();
        has_body = body.has_value();
        job.body = std::move(body).value_or("");
        break;
      }
      default:
        items.take();
    }
  }
  if (!items.is_at_end()) return corrupt("the job is not MessagePack: there is more behind it");
  if (job.topic.empty()) return corrupt("the job has no topic");
  if (job.id.empty()) return corrupt("the job has no id");
  if (!has_body) return corrupt("the job has no body that is text");
  return job;
}

}  // namespace delayq::cli::seeds
