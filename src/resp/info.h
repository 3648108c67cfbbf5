#pragma once

#include <string_view>

namespace delayq::resp {

/// The value of a line "name:value" in what INFO answers; empty when there is none. It lives as long as
/// `info`.
std::string_view info_line(std::string_view info, std::string_view name);

}  // namespace delayq::resp
