#pragma once

#include <string_view>

namespace delayq {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace delayq
