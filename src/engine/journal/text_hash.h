#pragma once

#include <functional>
#include <string_view>

#include <absl/hash/hash.h>
#include <absl/strings/string_view.h>

namespace delayq::journal {

/// Lets a table with text keys be asked with a view. (Where the packaged Abseil was built with a string_view
/// of its own, its hash does not know the standard one.)
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const {
    return absl::Hash<absl::string_view>{}(absl::string_view(text.data(), text.size()));
  }
};
using TextEqual = std::equal_to<>;

}  // namespace delayq::journal
