#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/container/node_hash_map.h>

#include "core/error.h"
#include "net/loop.h"
#include "net/redis/client.h"
#include "net/redis/options.h"

namespace delayq::net::redis {

/// A script and the name by which Redis knows it.
struct KnownScript {
  std::string_view source;
  std::string sha1;  ///< in hexadecimal
};

/// A command in flight. It is kept until it is answered, so that it can be sent again.
struct Request {
  std::string body;  ///< the words as they are sent; of a script without the first two
  size_t words = 0;  ///< in all
  const KnownScript* script = nullptr;
  Answer answer;
  uint64_t number = 0;           ///< the requests of a client are numbered in the order of the calls
  std::optional<uint16_t> slot;  ///< of its key; none: any node will do
  uint16_t lane = 0;             ///< all of one lane stay in order; none without a slot
  /// The client's own: its answer is called at once, not by poll().
  bool is_internal = false;
  bool wants_source = false;  ///< the node has said that it does not know the script
  std::optional<Address> to;  ///< the node to which another node has redirected it
  bool is_asking = false;     ///< only this once, while its slot moves (ASK)
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

/// The scripts that were run so far, with their SHA1.
class ScriptBook {
 public:
  /// The reference is valid as long as the book lives.
  const KnownScript& know(const Script& script);

 private:
  absl::node_hash_map<const char*, KnownScript> scripts_;  ///< by the place of the source
};

class Link;

/// Keeps the requests of one lane in order when Redis refuses some of them without doing them (NOSCRIPT,
/// MOVED, TRYAGAIN, ...). They are sent again, and later requests must not overtake them. So the lane is
/// stopped, and later requests are held here until all requests in flight are answered. Then the refused ones
/// are sent first. A lane is a slot of a Cluster; elsewhere, all requests of one connection are a lane.
///
/// A request that was in flight after a refused one and was not refused has overtaken it; no client can
/// prevent that. When a slot has moved, all its requests are refused. When the server forgot its scripts, all
/// are refused too, unless one is just being sent with its source, for the first time or by another
/// connection. So use SCRIPT FLUSH only on a Redis that at most one server uses.
class SlotOrder {
 public:
  SlotOrder() : lanes_(kSlots) {}

  /// Requests of a lane are about to be sent: one by one, or all that resume() returned before the first is
  /// sent.
  void leave(uint16_t lane) { ++lanes_[lane].away; }
  /// One of those was sent over this connection.
  void sent(uint16_t lane, const Link* link) { lanes_[lane].link = link; }
  /// Whether a request sent over this connection could overtake those in flight, because they were sent to
  /// another node before the slot moved.
  bool would_overtake(uint16_t lane, const Link* link) const {
    return lanes_[lane].away > 0 && lanes_[lane].link != link;
  }
  /// A request came back, with an answer or refused. Returns true if it was the last one of a stopped lane;
  /// then call resume().
  [[nodiscard]] bool come_back(uint16_t lane) { return --lanes_[lane].away == 0 && is_stopped(lane); }

  bool is_stopped(uint16_t lane) const { return !stopped_.empty() && stopped_.contains(lane); }
  /// The request was refused and will be sent again. Call this before its come_back().
  void stop(Request request);
  /// Holds later requests until all in flight have come back, as if one had been refused.
  void stop_behind(uint16_t lane) { stopped_.try_emplace(lane); }
  /// Holds a later request. REQUIRES: is_stopped().
  void hold(Request request);

  /// The requests to send now, in their order: the refused ones up to the first that goes to another node,
  /// which could be faster. When there are none: all that were held, and the lane is not stopped any more.
  std::vector<Request> resume(uint16_t lane);

 private:
  struct Stopped {
    std::vector<Request> refused;
    std::vector<Request> held;
  };

  struct Lane {
    uint32_t away = 0;           ///< how many requests are on their way
    const Link* link = nullptr;  ///< over which the last one was sent; only compared, it may be gone
  };

  std::vector<Lane> lanes_;
  absl::flat_hash_map<uint16_t, Stopped> stopped_;
};

/// The kinds of error replies, by what the client does next.
enum class Refusal : uint8_t {
  kFinal,       ///< the command was wrong, or failed
  kNotNow,      ///< Redis did nothing, and cannot at the moment: BUSY, MISCONF, NOREPLICAS, ...
  kTryAgain,    ///< Redis did nothing, and can soon: TRYAGAIN, CLUSTERDOWN, LOADING
  kNoScript,    ///< it does not know the script
  kMoved,       ///< another node has the slot
  kAsk,         ///< another node has the key, this once
  kNotMaster,   ///< this is a replica: READONLY
  kOutOfMemory  ///< of Redis
};

Refusal refusal_of(std::string_view text);

/// The error that a caller gets for an error reply.
Error error_of(std::string_view text);

/// Where a MOVED or an ASK points: "MOVED 3999 127.0.0.1:6381". A node that does not know its own name writes
/// ":6381"; then the host is that of `asked`.
struct Redirection {
  uint16_t slot = 0;
  Address to;
};
std::optional<Redirection> redirection_of(std::string_view text, const Address& asked);

}  // namespace delayq::net::redis
