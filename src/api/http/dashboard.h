#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "api/http/dialect.h"
#include "core/result.h"

namespace delayq::http {

/// The dashboard in a browser: the page at / and its files below /ui. They are the same for everyone and need
/// no token; all that the page shows comes from HTTP v1, with the token of the person who uses it.
/// Two dialects, since a dialect owns one root.
std::span<const Dialect* const> dashboard();

/// A file of the dashboard.
struct PageFile {
  std::string_view name;
  std::string_view tag;  ///< another one for other contents
  std::string_view type;
  std::string_view gzipped;
};

/// Takes apart what web/build.mjs wrote. The files are views of `pack`.
Result<std::vector<PageFile>> unpack(std::string_view pack);

}  // namespace delayq::http
