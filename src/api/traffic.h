#pragma once

#include <array>
#include <cstdint>

#include "core/error.h"

namespace delayq::api {

/// What was asked of an API and refused, since the server started.
struct Traffic {
  uint64_t requests = 0;
  std::array<uint64_t, kErrorTable.size()> refusals{};  ///< by ErrorCode

  void refuse(ErrorCode code) { ++refusals[static_cast<size_t>(code)]; }
};

}  // namespace delayq::api
