/// The error that nearly every check of a value returns.
#pragma once

#include <string>
#include <utility>

#include "core/error.h"

namespace delayq {

/// An Error of kInvalid. `detail` names the field and says what would be right.
[[nodiscard]] inline Error invalid(std::string detail) {
  return {ErrorCode::kInvalid, {}, std::move(detail)};
}

}  // namespace delayq
