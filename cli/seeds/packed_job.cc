#include "cli/seeds/packed_job.h"

#include <msgpuck.h>

namespace delayq::cli::seeds {

namespace {

Error corrupt(std::string detail) { return {ErrorCode::kCorrupt, {}, std::move(detail)}; }

/// Text, or bytes, which some encoders write for it; anything else is passed over.
std::optional<std::string> take_text(const char*& at) {
  uint32_t size = 0;
  const char* text = nullptr;
  switch (mp_typeof(*at)) {
    case MP_STR:
      text = mp_decode_str(&at, &size);
      return std::string(text, size);
    case MP_BIN:
      text = mp_decode_bin(&at, &size);
      return std::string(text, size);
    default:
      mp_next(&at);
      return std::nullopt;
  }
}

std::optional<double> take_number(const char*& at) {
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
      mp_next(&at);
      return std::nullopt;
  }
}

/// The key as its digit; some encoders write numbers. '\0' for any other.
char take_key(const char*& at) {
  if (mp_typeof(*at) == MP_UINT) {
    const uint64_t number = mp_decode_uint(&at);
    return number < 10 ? static_cast<char>('0' + number) : '\0';
  }
  const std::optional<std::string> text = take_text(at);
  return text && text->size() == 1 ? text->front() : '\0';
}

}  // namespace

Result<PackedJob> unpack_job(std::string_view bytes) {
  const char* end = bytes.data();
  if (bytes.empty() || mp_check(&end, bytes.data() + bytes.size()) != 0 || end != bytes.data() + bytes.size())
    return corrupt("the job is not MessagePack");
  const char* at = bytes.data();
  if (mp_typeof(*at) != MP_MAP) return corrupt("the job is not a map of MessagePack");
  // Of a map that says it has 2^31 pairs mp_check() expects none: it counts its items with 32 bits.
  uint32_t pairs = mp_decode_map(&at);
  if (pairs > static_cast<size_t>(end - at) / 2) return corrupt("the job is not MessagePack");
  PackedJob job;
  bool has_body = false;
  for (; pairs > 0; --pairs) {
    switch (take_key(at)) {
      case '1':
        job.topic = take_text(at).value_or("");
        break;
      case '2':
        job.id = take_text(at).value_or("");
        break;
      case '3':
        job.delay = take_number(at);
        break;
      case '4':
        job.exec_time = take_number(at);
        break;
      case '5': {
        std::optional<std::string> body = take_text(at);
        has_body = body.has_value();
        job.body = std::move(body).value_or("");
        break;
      }
      default:
        mp_next(&at);
    }
  }
  if (job.topic.empty()) return corrupt("the job has no topic");
  if (job.id.empty()) return corrupt("the job has no id");
  if (!has_body) return corrupt("the job has no body that is text");
  return job;
}

}  // namespace delayq::cli::seeds
