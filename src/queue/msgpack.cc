#include "queue/msgpack.h"

#include <limits>
#include <msgpuck.h>
#include <variant>

#include "core/limits.h"

namespace delayq {

namespace {

enum class StoredBackoff : uint8_t { kSteps, kExponential };

/// The size of the longest scalar: a type byte and eight bytes.
constexpr size_t kScalarBytes = 9;

template <class Encode>
void append(std::string& out, Encode encode) {
  char buffer[kScalarBytes];
  out.append(buffer, encode(buffer));
}

}  // namespace

void MsgpackWriter::map(uint32_t pairs) {
  append(out_, [pairs](char* to) { return mp_encode_map(to, pairs); });
}

void MsgpackWriter::array(uint32_t items) {
  append(out_, [items](char* to) { return mp_encode_array(to, items); });
}

void MsgpackWriter::uint(uint64_t value) {
  append(out_, [value](char* to) { return mp_encode_uint(to, value); });
}

void MsgpackWriter::number(double value) {
  append(out_, [value](char* to) { return mp_encode_double(to, value); });
}

void MsgpackWriter::boolean(bool value) {
  append(out_, [value](char* to) { return mp_encode_bool(to, value); });
}

void MsgpackWriter::text(std::string_view value) {
  append(out_, [&](char* to) { return mp_encode_strl(to, static_cast<uint32_t>(value.size())); });
  out_ += value;
}

void MsgpackWriter::backoff(const Backoff& value) {
  if (const auto* steps = std::get_if<StepBackoff>(&value)) {
    array(static_cast<uint32_t>(1 + steps->steps.size()));
    uint(static_cast<uint64_t>(StoredBackoff::kSteps));
    for (const Millis step : steps->steps) millis(step);
    return;
  }
  const auto& exponential = std::get<ExponentialBackoff>(value);
  array(5);
  uint(static_cast<uint64_t>(StoredBackoff::kExponential));
  millis(exponential.base);
  number(exponential.factor);
  millis(exponential.cap);
  number(exponential.jitter);
}

bool MsgpackReader::at(int type) const { return ok_ && next_ < end_ && mp_typeof(*next_) == type; }

uint32_t MsgpackReader::map() {
  ok_ = at(MP_MAP) && mp_check_map(next_, end_) <= 0;
  return ok_ ? mp_decode_map(&next_) : 0;
}

uint32_t MsgpackReader::array() {
  ok_ = at(MP_ARRAY) && mp_check_array(next_, end_) <= 0;
  return ok_ ? mp_decode_array(&next_) : 0;
}

uint64_t MsgpackReader::uint() {
  ok_ = at(MP_UINT) && mp_check_uint(next_, end_) <= 0;
  return ok_ ? mp_decode_uint(&next_) : 0;
}

uint32_t MsgpackReader::uint32() {
  const uint64_t value = uint();
  if (value > std::numeric_limits<uint32_t>::max()) reject();
  return ok_ ? static_cast<uint32_t>(value) : 0;
}

Millis MsgpackReader::millis() {
  const uint64_t value = uint();
  if (value > static_cast<uint64_t>(Millis::max().count())) reject();
  return Millis{ok_ ? static_cast<int64_t>(value) : 0};
}

double MsgpackReader::number() {
  ok_ = at(MP_DOUBLE) && mp_check_double(next_, end_) <= 0;
  return ok_ ? mp_decode_double(&next_) : 0;
}

bool MsgpackReader::boolean() {
  ok_ = at(MP_BOOL) && mp_check_bool(next_, end_) <= 0;
  return ok_ && mp_decode_bool(&next_);
}

bool MsgpackReader::is_text() const { return at(MP_STR); }

std::string_view MsgpackReader::text() {
  ok_ = at(MP_STR) && mp_check_strl(next_, end_) <= 0;
  if (!ok_) return {};
  const uint32_t size = mp_decode_strl(&next_);
  ok_ = size <= static_cast<size_t>(end_ - next_);
  if (!ok_) return {};
  const std::string_view value{next_, size};
  next_ += size;
  return value;
}

Backoff MsgpackReader::backoff() {
  const uint32_t items = array();
  const uint64_t kind = uint();
  if (kind == static_cast<uint64_t>(StoredBackoff::kSteps) && items >= 1 &&
      items <= 1 + Limits::kBackoffSteps) {
    StepBackoff steps;
    for (uint32_t i = 1; i < items; ++i) steps.steps.push_back(millis());
    return steps;
  }
  if (kind != static_cast<uint64_t>(StoredBackoff::kExponential) || items != 5) reject();
  ExponentialBackoff exponential;
  exponential.base = millis();
  exponential.factor = number();
  exponential.cap = millis();
  exponential.jitter = number();
  return exponential;
}

void MsgpackReader::skip() { ok_ = ok_ && next_ < end_ && mp_check(&next_, end_) == 0 && next_ <= end_; }

}  // namespace delayq
