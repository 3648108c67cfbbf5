#pragma once

#include <string>
#include <string_view>

namespace delayq {

/// The caller's own text for an error message: in double quotes, cut to about 60 bytes, and safe to print
/// anywhere whatever it held: quotes, backslashes, control characters and broken UTF-8 are escaped.
std::string quote(std::string_view text);

}  // namespace delayq
