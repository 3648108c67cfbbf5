#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/retry_policy.h"
#include "core/time.h"
#include "json/reader.h"

namespace delayq::http {

/// The members of a JSON object, or the values of a query, taken one by one by name. The first problem is
/// kept, with the field's name in front; what nobody took is a problem too. Texts live as long as this
/// object.
class Fields {
 public:
  /// An empty text is an empty object.
  static Result<Fields> of_json(std::string_view text);
  static Result<Fields> of_object(const json::Slice& object);
  /// Query values are texts; numbers and booleans among them are read from their text.
  explicit Fields(const std::vector<std::pair<std::string, std::string>>& query);

  /// Each takes a member when it is there (and not null), and notes a problem when it is something else.
  std::optional<std::string_view> text(std::string_view name);
  std::optional<uint64_t> number(std::string_view name);
  std::optional<uint32_t> small_number(std::string_view name);
  std::optional<bool> boolean(std::string_view name);
  std::optional<Millis> duration(std::string_view name);  ///< "30s", or a number of seconds
  std::optional<Moment> moment(std::string_view name);    ///< RFC 3339, or a number of Unix seconds
  std::optional<Backoff> backoff(std::string_view name);  ///< "10s,1m" or ["10s", "1m"]
  std::optional<json::Slice> value(std::string_view name);
  std::optional<std::vector<std::string_view>> texts(std::string_view name);

  void note(std::string_view field, std::string_view problem);
  /// To be asked last: the first problem, or a member that nobody took.
  Status finish();

 private:
  Fields() = default;

  std::optional<json::Slice> take(std::string_view name);
  /// The text of a string, or the digits of a number.
  std::optional<std::string_view> plain(std::string_view name, bool allow_number);
  std::string_view keep(std::string text);

  std::vector<json::Member> members_;
  std::vector<bool> taken_;
  std::deque<std::string> texts_;
  bool is_query_ = false;
  Status status_;
};

}  // namespace delayq::http
