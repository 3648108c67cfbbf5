#pragma once

#include <string>
#include <string_view>

namespace delayq {

/// A text as one word of a command line that somebody may copy: in single quotes where a shell needs them.
std::string shell_word(std::string_view text);

}  // namespace delayq
