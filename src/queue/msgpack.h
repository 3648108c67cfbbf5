#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/retry_policy.h"

namespace delayq {

/// Appends MessagePack to a string.
class MsgpackWriter {
 public:
  explicit MsgpackWriter(std::string& out) : out_(out) {}

  void map(uint32_t pairs);
  void array(uint32_t items);
  void uint(uint64_t value);
  void millis(Millis value) { uint(static_cast<uint64_t>(value.count())); }
  void number(double value);
  void boolean(bool value);
  void text(std::string_view value);
  void backoff(const Backoff& value);

 private:
  std::string& out_;
};

/// Reads bytes that need not be valid MessagePack. When the next value has another type than the one asked
/// for, or the bytes have ended, the read returns zero; from then on ok() is false and all reads return zero.
/// Never reads outside of the given bytes; texts are views into them.
class MsgpackReader {
 public:
  explicit MsgpackReader(std::string_view bytes) : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool ok() const { return ok_; }
  /// Whether all bytes were read without an error.
  bool complete() const { return ok_ && next_ == end_; }

  uint32_t map();
  uint32_t array();
  uint64_t uint();
  uint32_t uint32();
  Millis millis();
  double number();
  bool boolean();
  std::string_view text();
  /// Whether the next value is a text.
  bool is_text() const;
  Backoff backoff();
  /// Skips one value of any type.
  void skip();
  /// For the caller: a value that was read is invalid.
  void reject() { ok_ = false; }

 private:
  bool at(int type) const;

  const char* next_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace delayq
