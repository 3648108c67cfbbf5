#pragma once

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/transfer/line.h"
#include "core/encoding.h"
#include "core/result.h"
#include "core/text.h"
#include "json/reader.h"
#include "json/writer.h"

/// What the kinds of lines share when they are read and written.
namespace delayq::transfer {

/// The members of an object, read one by one by name. The first problem is kept, with the field. This is
/// stricter than http::Fields: null is not the same as a missing member, and a duration is a text.
class Members {
 public:
  Members(const json::Slice& object, std::deque<std::string>& texts)
      : members_(json::members_of(object)), taken_(members_.size()), texts_(texts) {}

  /// `name` must be a constant: an error about an unknown name lists it.
  const json::Slice* find(std::string_view name) {
    asked_.push_back(name);
    const json::Slice* found = nullptr;
    for (size_t i = 0; i < members_.size(); ++i) {
      if (members_[i].name != name) continue;
      if (found != nullptr) note(name, "is there twice");
      found = &members_[i].value;
      taken_[i] = true;
    }
    return found;
  }

  /// Whether it is there, without reading it.
  bool has(std::string_view name) const { return peek(name) != nullptr; }

  /// The member as it is, without reading it; null if it is not there.
  const json::Slice* peek(std::string_view name) const {
    const auto found = std::find_if(members_.begin(), members_.end(),
                                    [&](const json::Member& each) { return each.name == name; });
    return found == members_.end() ? nullptr : &found->value;
  }

  std::optional<std::string_view> text(std::string_view name) {
    const json::Slice* value = find(name);
    if (value == nullptr || !is(name, *value, json::Type::kString)) return std::nullopt;
    Result<std::string> text = json::text_of(*value);
    if (!text.ok()) {
      note(name, text.error().detail);
      return std::nullopt;
    }
    return texts_.emplace_back(std::move(*text));
  }

  std::optional<uint32_t> number(std::string_view name) {
    const auto found = large_number(name, std::numeric_limits<uint32_t>::max());
    return found ? std::optional(static_cast<uint32_t>(*found)) : std::nullopt;
  }

  std::optional<uint64_t> large_number(std::string_view name,
                                       uint64_t most = std::numeric_limits<uint64_t>::max()) {
    const json::Slice* value = find(name);
    if (value == nullptr || !is(name, *value, json::Type::kNumber)) return std::nullopt;
    const Result<uint64_t> number = json::whole_number_of(*value);
    if (number.ok() && *number <= most) return *number;
    note(name, fmt::format("expected a whole number up to {}, got {}", most, quote(value->text)));
    return std::nullopt;
  }

  std::optional<bool> boolean(std::string_view name) {
    const json::Slice* value = find(name);
    if (value == nullptr || !is(name, *value, json::Type::kBoolean)) return std::nullopt;
    return value->is_true();
  }

  /// A text that `parse` reads.
  template <class Parse>
  auto parsed(std::string_view name, Parse parse) -> std::optional<std::decay_t<decltype(*parse({}))>> {
    const std::optional<std::string_view> plain = text(name);
    if (!plain) return std::nullopt;
    auto result = parse(*plain);
    if (result.ok()) return std::move(*result);
    note(name, result.error().detail);
    return std::nullopt;
  }

  /// The bytes of a text in base64, which was the value of `name`.
  std::string_view decoded(std::string_view name, std::string_view text) {
    std::optional<std::string> bytes = from_base64(text);
    if (bytes) return texts_.emplace_back(std::move(*bytes));
    note(name, "this is not base64");
    return {};
  }

  std::deque<std::string>& texts() { return texts_; }

  void note(std::string_view name, std::string_view problem) {
    if (status_.ok()) status_ = invalid(name, fmt::format("{}: {}", name, problem));
  }
  void need(bool is_there, std::string_view name) {
    if (!is_there) note(name, "is missing");
  }
  /// To be called last.
  Status finish() {
    for (size_t i = 0; i < members_.size(); ++i) {
      if (!taken_[i]) note(members_[i].name, unknown(members_[i].name));
    }
    return status_;
  }

 private:
  std::string unknown(std::string_view name) const {
    const std::string_view meant = nearest(name, asked_);
    return fmt::format("this field is not known here{} Known: {}",
                       meant.empty() ? "." : fmt::format("; did you mean {}?", meant),
                       fmt::join(asked_, ", "));
  }

  bool is(std::string_view name, const json::Slice& value, json::Type type) {
    if (value.type == type) return true;
    note(name, fmt::format("expected {}, got {}", name_of(type), name_of(value.type)));
    return false;
  }

  std::vector<json::Member> members_;
  std::vector<bool> taken_;
  std::vector<std::string_view> asked_;
  std::deque<std::string>& texts_;
  Status status_;
};

/// One of body, body_text and body_base64.
std::string_view read_body(Members& members);
/// The options of a job, or of the jobs that a schedule makes.
void read_options(Members& members, JobOptions& options);
void write_options(json::Writer& json, const JobOptions& options);

// ---- schedules (schedule_line.cc)

/// Writes all members of the line.
void write_schedule(json::Writer& json, const ScheduleView& schedule);
/// Reads all members of the line.
void read_schedule(Members& members, Line& line);

}  // namespace delayq::transfer
