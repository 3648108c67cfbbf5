#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "json/reader.h"

namespace delayq::cli::seeds {

/// The members of a JSON object that another program wrote. Names are compared without regard to case, as Go
/// does when it reads them.
class JsonJob {
 public:
  /// `text` must live on. kCorrupt when it is no object.
  static Result<JsonJob> parse(std::string_view text);

  /// Null when there is no such member, or it is null.
  const json::Slice* find(std::string_view name) const;
  /// A text, or a number as it is written; empty when there is neither.
  std::string text(std::string_view name) const;
  /// nullopt when it is not a whole number that fits.
  std::optional<int64_t> number(std::string_view name) const;

 private:
  std::vector<json::Member> members_;
};

}  // namespace delayq::cli::seeds
