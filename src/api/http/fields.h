#pragma once

#include <cstdint>
#include <forward_list>
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
/// kept, with the field. A member that was not taken is a problem too, and takes precedence over the others,
/// since it may be the reason for them. Texts live as long as this object and what it was made of. The names
/// asked for are constants: an error about an unknown name lists them.
class Fields {
 public:
  using Query = std::vector<std::pair<std::string, std::string>>;

  /// For a request whose fields are all in its body: a query is refused. An empty text is an empty object.
  static Result<Fields> of_json(std::string_view text, const Query& query = {});
  static Result<Fields> of_object(const json::Slice& object);
  /// Query values are texts; numbers and booleans among them are read from their text.
  explicit Fields(const Query& query);
  bool is_query() const { return is_query_; }

  /// Each is called at most once for a name. It takes the member when it is there and not null, and notes a
  /// problem when it has another type.
  std::optional<std::string_view> text(std::string_view name);
  std::optional<uint64_t> number(std::string_view name);
  std::optional<int64_t> integer(std::string_view name);  ///< a whole number that may be below zero
  std::optional<uint32_t> small_number(std::string_view name);
  std::optional<bool> boolean(std::string_view name);
  std::optional<Millis> duration(std::string_view name);  ///< "30s", or a number of seconds
  std::optional<Moment> moment(std::string_view name);    ///< RFC 3339, or a number of Unix seconds
  std::optional<Backoff> backoff(std::string_view name);  ///< "10s,1m" or ["10s", "1m"]
  std::optional<json::Slice> value(std::string_view name);
  std::optional<std::vector<std::string_view>> texts(std::string_view name);
  /// An object whose members are all texts, with any names, in their order; null is like a missing one. In a
  /// query each is written as "name[NAME]=text".
  using NamedText = std::pair<std::string_view, std::string_view>;
  std::vector<NamedText> named_texts(std::string_view name);
  /// Whether the member is there and is an object. Does not take it.
  bool is_object(std::string_view name) const;
  /// An object within this one. close() notes its problems here, under "outer.inner".
  std::optional<Fields> object(std::string_view name);
  void close(Fields& inner);

  /// The names of the members that are null, for calls in which that means more than a missing member.
  std::vector<std::string_view> nulls() const;

  /// Keeps a text for as long as this object lives.
  std::string_view keep(std::string text);
  void note(std::string_view field, std::string_view problem);
  /// To be called last. Returns an error about a member that was not taken, or the first problem.
  Status finish();
  /// The first problem alone, for calls that ignore unknown fields.
  const Status& problem() const { return status_; }
  /// For a request that has no fields at all.
  static Status expect_none(const Query& query) { return query.empty() ? Status() : Fields(query).finish(); }
  static Status expect_none(std::string_view text, const Query& query);

 private:
  Fields() = default;

  void ask(std::string_view name);
  std::optional<json::Slice> take(std::string_view name);
  /// The text of a string, or the digits of a number.
  std::optional<std::string_view> plain(std::string_view name, bool allow_number);
  std::optional<std::string_view> read_text(std::string_view name, const json::Slice& string);
  std::vector<NamedText> named_in_query(std::string_view name);
  Error unknown(std::string_view name) const;

  std::vector<json::Member> members_;
  std::vector<bool> taken_;
  std::vector<std::string_view> asked_;
  std::string within_;  ///< "keep_done." for the members of that object
  std::forward_list<std::string> texts_;
  bool is_query_ = false;
  Status status_;
};

}  // namespace delayq::http
