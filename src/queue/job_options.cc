#include "queue/job_options.h"

#include <fmt/format.h>

#include "core/limits.h"
#include "queue/job_headers.h"
#include "queue/msgpack.h"

namespace delayq {

namespace {

/// The keys of the stored map. A number is never reused for another option.
enum class Field : uint64_t {
  kAttempts = 0,
  kBackoff = 1,
  kLease = 2,
  kCallback = 3,
  kContentType = 4,
  kMethod = 5,
  kFormat = 6,
  kName = 7,
  kKafkaTopic = 8,
  kKafkaRecord = 9,  ///< the headers, of a job that was a Kafka record
  kHeaders = 10,
  kCallbackHeaders = 11,
  kIsNotice = 12,
};

constexpr size_t kContentTypeBytes = 255;
constexpr size_t kNameBytes = 255;

Status check_text(std::string_view field, std::string_view text, size_t max) {
  if (text.size() > max) {
    return invalid(field, fmt::format("{} has {} bytes: at most {} are allowed", field, text.size(), max));
  }
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return invalid(field, fmt::format("{} must not have control characters", field));
    }
  }
  return {};
}

void read_field(uint64_t field, MsgpackReader& reader, JobOptions& options) {
  switch (static_cast<Field>(field)) {
    case Field::kAttempts:
      options.attempts = reader.uint32();
      return;
    case Field::kBackoff:
      options.backoff = reader.backoff();
      return;
    case Field::kLease:
      options.lease = reader.millis();
      return;
    case Field::kCallback:
      options.callback = reader.text();
      return;
    case Field::kContentType:
      options.content_type = reader.text();
      return;
    case Field::kMethod:
      options.method = reader.text();
      return;
    case Field::kFormat:
      if (const auto format = parse_callback_format(reader.text()); format.ok()) options.format = *format;
      return;
    case Field::kName:
      options.name = reader.text();
      return;
    case Field::kKafkaTopic:
      options.kafka_topic = reader.text();
      return;
    case Field::kKafkaRecord:
    case Field::kHeaders:
      options.headers = reader.text();
      return;
    case Field::kCallbackHeaders:
      options.callback_headers = reader.text();
      return;
    case Field::kIsNotice:
      options.is_notice = reader.boolean();
      return;
  }
  reader.skip();
}

}  // namespace

Status check_job_options(const JobOptions& options) {
  if (options.attempts) {
    if (Status status = check_attempts(*options.attempts); !status) return status;
  }
  if (options.backoff) {
    if (Status status = check_backoff(*options.backoff); !status) return status;
  }
  if (options.lease) {
    if (Status status = check_lease(*options.lease); !status) return status;
  }
  if (!options.callback.empty()) {
    if (Status status = check_callback(options.callback); !status) return status;
  }
  if (!options.method.empty()) {
    if (Status status = check_callback_method(options.method); !status) return status;
  }
  if (!options.kafka_topic.empty()) {
    if (Status status = check_kafka_topic(options.kafka_topic); !status)
      return about_field("kafka_topic", status.error());
  }
  if (!options.headers.empty()) {
    if (Status status = check_job_headers(options.headers); !status) return status;
  }
  if (!options.callback_headers.empty()) {
    if (options.callback.empty()) {
      return invalid("callback_headers",
                     "callback_headers: only a job with a callback of its own has them; those of its topic's "
                     "callback are a setting of the topic");
    }
    if (Status status = check_callback_header_lines(options.callback_headers); !status) return status;
  }
  if (Status status = check_text("name", options.name, kNameBytes); !status) return status;
  return check_text("content_type", options.content_type, kContentTypeBytes);
}

Status check_new_options(const JobOptions& options) {
  if (Status status = check_job_options(options); !status) return status;
  return options.headers.empty() ? Status{} : check_header_names(options.headers);
}

void encode_job_options(const JobOptions& options, std::string& out) {
  if (options.says_nothing()) return;
  const uint32_t pairs = uint32_t{options.attempts.has_value()} + options.backoff.has_value() +
                         options.lease.has_value() + !options.callback.empty() +
                         !options.content_type.empty() + !options.method.empty() +
                         options.format.has_value() + !options.name.empty() + !options.kafka_topic.empty() +
                         !options.headers.empty() + !options.callback_headers.empty() + options.is_notice;
  MsgpackWriter writer{out};
  const auto key = [&writer](Field field) { writer.uint(static_cast<uint64_t>(field)); };
  writer.map(pairs);
  if (options.attempts) key(Field::kAttempts), writer.uint(*options.attempts);
  if (options.backoff) key(Field::kBackoff), writer.backoff(*options.backoff);
  if (options.lease) key(Field::kLease), writer.millis(*options.lease);
  if (!options.callback.empty()) key(Field::kCallback), writer.text(options.callback);
  if (!options.content_type.empty()) key(Field::kContentType), writer.text(options.content_type);
  if (!options.method.empty()) key(Field::kMethod), writer.text(options.method);
  if (options.format) key(Field::kFormat), writer.text(name_of(*options.format));
  if (!options.name.empty()) key(Field::kName), writer.text(options.name);
  if (!options.kafka_topic.empty()) key(Field::kKafkaTopic), writer.text(options.kafka_topic);
  if (!options.callback_headers.empty()) key(Field::kCallbackHeaders), writer.text(options.callback_headers);
  if (options.is_notice) key(Field::kIsNotice), writer.boolean(true);
  if (options.headers.empty()) return;
  key(are_of_record(options.headers) ? Field::kKafkaRecord : Field::kHeaders);
  writer.text(options.headers);
}

JobOptions decode_job_options(std::string_view bytes) {
  if (bytes.empty()) return {};
  JobOptions options;
  MsgpackReader reader{bytes};
  const uint32_t pairs = reader.map();
  for (uint32_t i = 0; i < pairs && reader.ok(); ++i) read_field(reader.uint(), reader, options);
  if (!reader.complete() || !check_job_options(options)) return {};
  return options;
}

}  // namespace delayq
