#pragma once

#include <string_view>

#include "json/writer.h"

namespace delayq::json {

/// The body of a job as a member of an object that stands on one line: under "body" when it is a JSON value
/// that fits there byte for byte; else under "body_text" when it is text (in UTF-8, with few escapes); else
/// under "body_base64".
void write_body(Writer& json, std::string_view body);

/// The body of a job as a member of any object: a JSON value under "body" as it was written, other text under
/// "body" as a string; otherwise under "body_base64".
void write_body_value(Writer& json, std::string_view body);

}  // namespace delayq::json
