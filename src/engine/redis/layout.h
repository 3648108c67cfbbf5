#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/redis/client.h"

namespace delayq::redis {

/// On which servers tell each other what is new, below the prefix.
inline constexpr std::string_view kNewsChannel = "news";

/// How a deployment's jobs are laid out. The first server that uses a prefix writes it down, and it holds for
/// all that come later.
struct Layout {
  std::string version;  ///< of records and keys
  std::string shards;
};

/// Writes the layout down under `meta`, the key for it, unless that has been done. What holds then is in the
/// answer, for read_layout().
void settle_layout(net::redis::Client& client, std::string_view meta, uint32_t shards,
                   net::redis::Answer answer);
/// Only reads it; of a deployment that is new both texts are empty.
void find_layout(net::redis::Client& client, std::string_view meta, net::redis::Answer answer);
/// nullopt: that is no answer to this.
std::optional<Layout> read_layout(const resp::Value& answer);

/// Tries what the scripts do, on the prefix's channel and on a key that nobody else has: `name` below the
/// prefix. The answer is for refused_commands().
void try_rights(net::redis::Client& client, std::string_view prefix, std::string_view name,
                net::redis::Answer answer);
/// The commands that the user may not call, "PUBLISH, TIME"; empty: none.
std::string refused_commands(const resp::Value& answer);

/// How many shards there are. kUnavailable, with what to do about it, when this program does not know the
/// layout or when `configured` is another number; 0: any will do.
Result<uint32_t> shards_of(const Layout& layout, std::string_view prefix, uint32_t configured);

}  // namespace delayq::redis
