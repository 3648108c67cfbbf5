#pragma once

#include <string>

namespace delayq::http {

/// docs/reference/http.md, from the routes and the error table.
std::string http_reference();

}  // namespace delayq::http
