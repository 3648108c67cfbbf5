#include "core/token.h"

#include <algorithm>

#include "core/hex.h"

namespace delayq {

std::optional<Scope> parse_scope(std::string_view name) {
  const auto* const found = std::find(kScopeNames.begin(), kScopeNames.end(), name);
  if (found == kScopeNames.end()) return std::nullopt;
  return static_cast<Scope>(found - kScopeNames.begin());
}

std::optional<Sha256> parse_sha256(std::string_view hex) {
  Sha256 hash{};
  const std::optional<std::string> bytes = from_hex(hex);
  if (!bytes || bytes->size() != hash.size()) return std::nullopt;
  std::copy(bytes->begin(), bytes->end(), hash.begin());
  return hash;
}

}  // namespace delayq
