#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/redis/keys.h"
#include "net/redis/client.h"

namespace delayq::redis {

/// On which servers tell each other what is new, below the prefix.
inline constexpr std::string_view kNewsChannel = "news";

/// How a deployment's jobs are laid out. The first server that uses a prefix writes it down, and it holds for
/// all that come later.
struct Layout {
  std::string version;  ///< of records and keys
  std::string shards;   ///< how many there are
  std::string tags{};   ///< theirs, with spaces between them; of version 1 none: they are numbered
};

/// Writes the layout down under `meta`, the key for it, unless that has been done. What holds then is in the
/// answer, for read_layout(). Version 1 where the tags are numbered: earlier programs know that, too.
void settle_layout(net::redis::Client& client, std::string_view meta, const Tags& tags,
                   net::redis::Answer answer);
/// Only reads it; of a deployment that is new all texts are empty.
void find_layout(net::redis::Client& client, std::string_view meta, net::redis::Answer answer);
/// nullopt: that is no answer to this.
std::optional<Layout> read_layout(const resp::Value& answer);

/// Tries what the scripts do, on the prefix's channel and on a key that nobody else has: `name` below the
/// prefix. The answer is for refused_commands().
void try_rights(net::redis::Client& client, std::string_view prefix, std::string_view name,
                net::redis::Answer answer);
/// The commands that the user may not call, "PUBLISH, TIME"; empty: none.
std::string refused_commands(const resp::Value& answer);

/// The tags of the shards. kUnavailable, with what to do about it, when this program does not know the layout
/// or when `configured` is another number of shards; 0: any will do.
Result<Tags> tags_of(const Layout& layout, std::string_view prefix, uint32_t configured);

}  // namespace delayq::redis
