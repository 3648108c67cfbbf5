#pragma once

#include <string_view>

namespace delayq::embedded {

/// src/api/http/openapi.yaml: the description of every call, which the reference page is made of.
std::string_view openapi_yaml();

}  // namespace delayq::embedded
