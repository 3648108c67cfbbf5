#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace delayq::cli {

// How much room a text takes on a terminal, whose characters are not all equally wide: those of Chinese,
// Japanese and Korean, and most pictures, take two columns, marks that go above another character take none.
// Bytes that are not UTF-8 take one each.

/// Of a text without control characters.
size_t columns_of(std::string_view text);

/// The beginning of a text that takes at most so many columns. A wide character that would only fit by half
/// is left out.
std::string cut_to_columns(std::string_view text, size_t most);

}  // namespace delayq::cli
