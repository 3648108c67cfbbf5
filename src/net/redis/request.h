#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "net/loop.h"
#include "net/redis/client.h"
#include "net/redis/options.h"

namespace delayq::net::redis {

/// A script and the name by which Redis knows it.
struct KnownScript {
  std::string_view source;
  std::string sha1;  ///< in hexadecimal
};

/// A command on its way. It is kept until it is answered, so that it can be sent once more.
struct Request {
  std::string body;  ///< the words as they are sent; of a script without the first two
  size_t words = 0;  ///< in all
  const KnownScript* script = nullptr;
  Answer answer;
  uint64_t number = 0;           ///< counts those of a client, in the order in which they were given
  std::optional<uint16_t> slot;  ///< of its key; none: any node will do
  uint16_t lane = 0;             ///< all of one lane stay in order; none without a slot
  /// The client's own: its answer is called at once, not by poll().
  bool is_internal = false;
  bool wants_source = false;  ///< the node has said that it does not know the script
  std::optional<Address> to;  ///< where another node said that it belongs
  bool is_asking = false;     ///< there only this once, while its slot moves
  int tries = 0;              ///< how often it was sent and refused
  Loop::Steady give_up{};     ///< until then it waits for a connection
  Loop::Steady patience{};    ///< until then it is sent again however often it was refused
  Loop::Steady not_before{};  ///< it is not sent again before this

  size_t bytes() const { return body.size(); }
};

Request make_command(std::span<const std::string_view> words, Answer answer);
/// A command of the client's own.
Request make_internal(std::initializer_list<std::string_view> words, Answer answer);
Request make_run(const KnownScript& script, std::span<const std::string_view> keys,
                 std::span<const std::string_view> arguments, Answer answer);

/// Appends the request as it is sent.
void append(std::string& out, const Request& request, bool with_source);

}  // namespace delayq::net::redis
