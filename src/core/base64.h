#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace delayq {

/// RFC 4648, with padding.
std::string to_base64(std::string_view bytes);

/// The bytes of such a text. Nothing for anything else (other characters, wrong padding, bits that no byte
/// gets): each text of bytes has one form.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace delayq
