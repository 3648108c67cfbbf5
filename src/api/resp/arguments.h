#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/job_state.h"
#include "core/result.h"
#include "core/retry_policy.h"
#include "core/time.h"

namespace delayq::resp {

/// Compares words; upper and lower case of ASCII letters are the same.
bool same_word(std::string_view a, std::string_view b);

/// Walks over a command's arguments. Every problem is an error that names the field.
class Arguments {
 public:
  explicit Arguments(std::span<const std::string_view> all) : left_(all) {}

  std::span<const std::string_view> left() const { return left_; }
  bool empty() const { return left_.empty(); }
  size_t size() const { return left_.size(); }
  /// REQUIRES: not empty.
  std::string_view front() const { return left_.front(); }
  std::string_view take() {
    const std::string_view first = left_.front();
    left_ = left_.subspan(1);
    return first;
  }
  /// Takes the next argument if it is this word.
  bool take_word(std::string_view word) {
    if (left_.empty() || !same_word(left_.front(), word)) return false;
    left_ = left_.subspan(1);
    return true;
  }

  /// The value after an option's name; an error when it is missing.
  Result<std::string_view> text(std::string_view field);
  Result<Millis> duration(std::string_view field);
  Result<Moment> moment(std::string_view field);
  Result<uint64_t> number(std::string_view field);
  /// A number that fits into 32 bits.
  Result<uint32_t> small_number(std::string_view field);
  Result<Backoff> backoff(std::string_view field);
  Result<JobState> state(std::string_view field);
  /// The error about the arguments that are left.
  Error unexpected(std::string_view usage) const;

 private:
  std::span<const std::string_view> left_;
};

/// Stores the value of an option, or returns its error.
template <class T, class Field>
Status keep(const Result<T>& value, Field& field) {
  if (!value.ok()) return value.error();
  field = *value;
  return {};
}

}  // namespace delayq::resp
