#include "queue/msgpack.h"
#include "queue/settings.h"

namespace delayq {

namespace {

/// The keys of the map. Stored: a number is never used again for something else.
enum class Field : uint64_t {
  kAttempts = 0,
  kBackoff = 1,
  kLease = 2,
  kKeepDone = 3,
  kKeepDead = 4,
  kRate = 5,
  kConcurrency = 6,
  kPaused = 7,
  kPriority = 8,
  kDelivery = 9,
  kCallback = 10,
  kCallbackMethod = 11,
  kCallbackTimeout = 12,
  kCallbackFormat = 13,
  kCallbackSecrets = 14,
  kRedisKey = 15,
  kRedisContent = 16,
  kRedisMaxlen = 17,
  // Of a retention of which only one part is said; kKeepDone and kKeepDead have both.
  kKeepDoneTime = 18,
  kKeepDoneCount = 19,
  kKeepDeadTime = 20,
  kKeepDeadCount = 21,
};

/// Writes the fields that are said, and counts them, since a map says its size first.
class FieldWriter {
 public:
  template <class T, class Write>
  void field(Field key, const std::optional<T>& value, Write write) {
    if (!value) return;
    ++count_;
    writer_.uint(static_cast<uint64_t>(key));
    write(writer_, *value);
  }

  std::string finish() {
    if (count_ == 0) return {};
    std::string out;
    MsgpackWriter{out}.map(count_);
    return out + fields_;
  }

 private:
  uint32_t count_ = 0;
  std::string fields_;
  MsgpackWriter writer_{fields_};
};

void write_uint(MsgpackWriter& writer, uint32_t value) { writer.uint(value); }
void write_millis(MsgpackWriter& writer, Millis value) { writer.millis(value); }
void write_text(MsgpackWriter& writer, const std::string& value) { writer.text(value); }

template <class Word>
void write_word(MsgpackWriter& writer, Word value) {
  writer.text(name_of(value));
}

void write_texts(MsgpackWriter& writer, const std::vector<std::string>& values) {
  writer.array(static_cast<uint32_t>(values.size()));
  for (const std::string& value : values) writer.text(value);
}

void write_retention(MsgpackWriter& writer, const Retention& value) {
  writer.array(2);
  writer.millis(value.time);
  writer.uint(value.count);
}

/// Both parts as one field, which older programs know too.
void write_keep(FieldWriter& out, const RetentionSetting& keep, Field both, Field time, Field count) {
  if (keep.time && keep.count)
    return out.field(both, std::optional(Retention{*keep.time, *keep.count}), write_retention);
  out.field(time, keep.time, write_millis);
  out.field(count, keep.count, write_uint);
}

void write_rate(MsgpackWriter& writer, const Rate& value) {
  writer.array(2);
  writer.uint(value.count);
  writer.millis(value.per);
}

Retention read_retention(MsgpackReader& reader) {
  if (reader.array() != 2) reader.reject();
  const Millis time = reader.millis();
  return {time, reader.uint32()};
}

Rate read_rate(MsgpackReader& reader) {
  if (reader.array() != 2) reader.reject();
  const uint32_t count = reader.uint32();
  return {count, reader.millis()};
}

template <class Word>
std::optional<Word> read_word(MsgpackReader& reader, Result<Word> (*parse)(std::string_view)) {
  const Result<Word> word = parse(reader.text());
  if (word.ok()) return *word;
  reader.reject();
  return std::nullopt;
}

std::vector<std::string> read_texts(MsgpackReader& reader) {
  std::vector<std::string> texts;
  const uint32_t count = reader.array();
  for (uint32_t i = 0; i < count && reader.ok(); ++i) texts.emplace_back(reader.text());
  return texts;
}

void read_keep_part(bool is_time, MsgpackReader& reader, RetentionSetting& keep) {
  if (is_time) {
    keep.time = reader.millis();
  } else {
    keep.count = reader.uint32();
  }
}

void read_field(uint64_t field, MsgpackReader& reader, Settings& settings) {
  switch (static_cast<Field>(field)) {
    case Field::kAttempts:
      settings.attempts = reader.uint32();
      return;
    case Field::kBackoff:
      settings.backoff = reader.backoff();
      return;
    case Field::kLease:
      settings.lease = reader.millis();
      return;
    case Field::kKeepDone:
      settings.keep_done = read_retention(reader);
      return;
    case Field::kKeepDead:
      settings.keep_dead = read_retention(reader);
      return;
    case Field::kRate:
      settings.rate = read_rate(reader);
      return;
    case Field::kConcurrency:
      settings.concurrency = reader.uint32();
      return;
    case Field::kPaused:
      settings.paused = reader.boolean();
      return;
    case Field::kPriority:
      settings.priority = reader.uint32();
      return;
    case Field::kDelivery:
      settings.delivery = read_word(reader, parse_delivery);
      return;
    case Field::kCallback:
      settings.callback = std::string{reader.text()};
      return;
    case Field::kCallbackMethod:
      settings.callback_method = std::string{reader.text()};
      return;
    case Field::kCallbackTimeout:
      settings.callback_timeout = reader.millis();
      return;
    case Field::kCallbackFormat:
      settings.callback_format = read_word(reader, parse_callback_format);
      return;
    case Field::kCallbackSecrets:
      settings.callback_secrets = read_texts(reader);
      return;
    case Field::kRedisKey:
      settings.redis_key = std::string{reader.text()};
      return;
    case Field::kRedisContent:
      settings.redis_content = read_word(reader, parse_redis_content);
      return;
    case Field::kRedisMaxlen:
      settings.redis_maxlen = reader.uint();
      return;
    case Field::kKeepDoneTime:
    case Field::kKeepDoneCount:
      return read_keep_part(field == static_cast<uint64_t>(Field::kKeepDoneTime), reader, settings.keep_done);
    case Field::kKeepDeadTime:
    case Field::kKeepDeadCount:
      return read_keep_part(field == static_cast<uint64_t>(Field::kKeepDeadTime), reader, settings.keep_dead);
  }
  reader.skip();
}

Error corrupt(std::string detail) { return {ErrorCode::kCorrupt, "settings", std::move(detail)}; }

}  // namespace

std::string encode_settings(const Settings& settings) {
  FieldWriter out;
  out.field(Field::kAttempts, settings.attempts, write_uint);
  out.field(Field::kBackoff, settings.backoff,
            [](MsgpackWriter& to, const Backoff& value) { to.backoff(value); });
  out.field(Field::kLease, settings.lease, write_millis);
  write_keep(out, settings.keep_done, Field::kKeepDone, Field::kKeepDoneTime, Field::kKeepDoneCount);
  write_keep(out, settings.keep_dead, Field::kKeepDead, Field::kKeepDeadTime, Field::kKeepDeadCount);
  out.field(Field::kRate, settings.rate, write_rate);
  out.field(Field::kConcurrency, settings.concurrency, write_uint);
  out.field(Field::kPaused, settings.paused, [](MsgpackWriter& to, bool value) { to.boolean(value); });
  out.field(Field::kPriority, settings.priority, write_uint);
  out.field(Field::kDelivery, settings.delivery, write_word<Delivery>);
  out.field(Field::kCallback, settings.callback, write_text);
  out.field(Field::kCallbackMethod, settings.callback_method, write_text);
  out.field(Field::kCallbackTimeout, settings.callback_timeout, write_millis);
  out.field(Field::kCallbackFormat, settings.callback_format, write_word<CallbackFormat>);
  out.field(Field::kCallbackSecrets, settings.callback_secrets, write_texts);
  out.field(Field::kRedisKey, settings.redis_key, write_text);
  out.field(Field::kRedisContent, settings.redis_content, write_word<RedisContent>);
  out.field(Field::kRedisMaxlen, settings.redis_maxlen,
            [](MsgpackWriter& to, uint64_t value) { to.uint(value); });
  return out.finish();
}

Result<Settings> decode_settings(std::string_view bytes) {
  Settings settings;
  if (bytes.empty()) return settings;
  MsgpackReader reader{bytes};
  const uint32_t pairs = reader.map();
  for (uint32_t i = 0; i < pairs && reader.ok(); ++i) read_field(reader.uint(), reader, settings);
  if (!reader.complete()) return corrupt("stored settings cannot be read");  // not shown: they have secrets
  if (const Status status = check_settings(settings); !status) {
    return corrupt("stored settings are out of range: " + status.error().detail);
  }
  return settings;
}

}  // namespace delayq
