#include "engine/redis/foreign_key.h"

#include <fmt/format.h>

namespace delayq::redis {

Error explain_foreign_key(Error error, std::string_view key, std::string_view prefix,
                          std::string_view prefix_name) {
  if (error.detail.find("WRONGTYPE") == std::string::npos) return error;
  const std::string which =
      key.empty() ? fmt::format("a key that begins with {}:", prefix) : fmt::format("the key {}", key);
  error.code = ErrorCode::kUnavailable;
  error.detail = fmt::format("another program has {} (WRONGTYPE): choose another {}", which, prefix_name);
  return error;
}

}  // namespace delayq::redis
