#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace delayq::transfer {

/// RFC 4648 with its padding, and nothing else: each text of bytes has one form.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace delayq::transfer
