#include "queue/context.h"

#include <fmt/format.h>

namespace delayq {

Status Context::check_running(std::string_view op) const {
  if (!stopping) return {};
  return Error{ErrorCode::kStopping, std::string{op}, "the server is shutting down"};
}

Status check_batch(std::string_view op, size_t size) {
  if (size <= Limits::kBatchJobs) return {};
  return Error{ErrorCode::kTooLarge, std::string{op},
               fmt::format("a batch of {}: at most {} are allowed", size, Limits::kBatchJobs)};
}

}  // namespace delayq
