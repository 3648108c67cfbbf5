#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/http/response.h"
#include "core/error.h"
#include "core/job.h"
#include "json/writer.h"

/// What the three APIs say in the same way.
namespace delayq::compat {

/// The HTTP status of a refusal; `status` as in http::Dialect::refusal.
int status_of(const Error& error, int status);

/// An answer as the originals' web framework sends JSON.
http::Response answer(std::string body, int status = 200);

}  // namespace delayq::compat
