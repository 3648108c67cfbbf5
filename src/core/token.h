#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace delayq {

/// A set of topics: those that match one of these patterns, so no topic at all if there are no patterns. A
/// pattern is a topic's name, "order.*" (all names with this prefix) or "*".
using TopicPatterns = std::span<const std::string>;

inline const std::array<std::string, 1> kAllTopics{"*"};

bool covers(TopicPatterns patterns, std::string_view topic);
bool covers_all(TopicPatterns patterns);

/// OK for a topic's name, a prefix of names followed by a star, or the star alone.
Status check_topic_pattern(std::string_view pattern);

/// The permissions of a token. For a verb that lists several, one of them is enough.
enum class Scope : uint8_t {
  kPush,      ///< push, cancel, reschedule
  kConsume,   ///< pop, ack, nack, extend
  kRead,      ///< everything that changes nothing
  kSchedule,  ///< create, change and remove schedules, and look at them
  kAdmin,     ///< all of these, and whole topics: settings, pause, purge, redrive, export, import, backup
};
inline constexpr std::array<std::string_view, 5> kScopeNames{"push", "consume", "read", "schedule", "admin"};

/// A set of scopes.
using Scopes = uint8_t;
constexpr Scopes only(Scope scope) { return static_cast<Scopes>(1u << static_cast<unsigned>(scope)); }
constexpr Scopes operator|(Scope a, Scope b) { return static_cast<Scopes>(only(a) | only(b)); }
constexpr Scopes operator|(Scopes a, Scope b) { return static_cast<Scopes>(a | only(b)); }

inline constexpr Scopes kAnyScope =
    Scope::kPush | Scope::kConsume | Scope::kRead | Scope::kSchedule | Scope::kAdmin;

std::optional<Scope> parse_scope(std::string_view name);

using Sha256 = std::array<uint8_t, 32>;

/// Reads 64 hexadecimal digits. Returns nothing for any other text.
std::optional<Sha256> parse_sha256(std::string_view hex);

/// The longest name of a token.
inline constexpr size_t kTokenNameBytes = 100;

/// An access token. Only the hash of the secret is stored.
struct Token {
  std::string name;
  Sha256 sha256{};
  Scopes scopes = 0;
  std::vector<std::string> topics;   ///< patterns
  uint32_t requests_per_second = 0;  ///< 0: no limit
  uint32_t waiters = 0;              ///< pops that wait at the same time; 0: no limit

  bool has_any(Scopes wanted) const { return (scopes & (wanted | Scope::kAdmin)) != 0; }
  bool covers(std::string_view topic) const { return delayq::covers(topics, topic); }
  bool covers_all() const { return delayq::covers_all(topics); }

  bool operator==(const Token&) const = default;
};

}  // namespace delayq
