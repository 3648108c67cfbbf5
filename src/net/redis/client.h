#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <absl/functional/any_invocable.h>

#include "core/result.h"
#include "core/time.h"
#include "net/redis/options.h"
#include "resp/value.h"

namespace delayq::net {
class Loop;
}

namespace delayq::net::redis {

/// A script that Redis runs. Both texts live as long as the program: a client identifies a script by the
/// address of its source.
struct Script {
  std::string_view name;  ///< for messages
  std::string_view source;
};

/// The result of a command. An error is one of
///   kUnavailable  no connection; or it broke or stayed silent, and then the command may or may not have been
///                 carried out; or Redis says that it cannot work now (LOADING, CLUSTERDOWN, READONLY, ...)
///   kOverloaded   more is outstanding than ClientOptions allow, or Redis is out of memory: nothing was done
///   kInvalid      any other error reply; the detail is Redis's own text
/// A value is never of type kError itself, but an array may have such items.
using Answer = absl::AnyInvocable<void(Result<resp::Value>)>;

/// What a client has done so far.
struct ClientFigures {
  uint64_t commands = 0;    ///< given to call() and run()
  uint64_t errors = 0;      ///< of them answered with an error
  uint64_t retries = 0;     ///< sent once more because Redis said that nothing was done: MOVED, NOSCRIPT, ...
  uint64_t connects = 0;    ///< connections that were established
  uint64_t reconnects = 0;  ///< of them to replace a lost one
};

/// A client of a Redis deployment: one server, a group under Sentinel, or a Cluster.
///
/// For one thread, the loop's. No call blocks, and no answer comes from inside a call: poll() hands out the
/// answers that arrived during the turn of the loop. Commands are sent together at the end of the turn, and
/// none is sent twice unless Redis replied that it was not executed. Commands with keys of one hash tag are
/// executed in the order of the calls, also if Redis refuses some at first (unknown script, moved slot),
/// except as SlotOrder explains. A client may be destroyed at any time, also by what poll() calls; answers
/// that were not handed out then never come.
///
/// Replies are those of RESP2: a map is an array of keys and values, a double is text.
class Client {
 public:
  virtual ~Client() = default;

  /// Sends a command. `key` says where to in a cluster; empty: any node. The words are copied.
  virtual void call(std::string_view key, std::span<const std::string_view> words, Answer answer) = 0;
  void call(std::string_view key, std::initializer_list<std::string_view> words, Answer answer) {
    call(key, std::span(words.begin(), words.size()), std::move(answer));
  }
  /// Runs a script, at the node of its first key. All keys have the same hash tag. REQUIRES: a key.
  virtual void run(const Script& script, std::span<const std::string_view> keys,
                   std::span<const std::string_view> arguments, Answer answer) = 0;

  /// Subscribes to a channel. `listening` is called each time the subscription becomes active, including the
  /// first time. Messages before that were missed.
  virtual void subscribe(std::string channel, std::function<void(std::string_view message)> heard,
                         std::function<void()> listening) = 0;

  /// Hands out the answers and messages that have arrived. Returns how many there were. The functions called
  /// may call the client again; those answers come with the next poll().
  virtual size_t poll() = 0;
  /// Commands without an answer, or with one that poll() has not handed out yet. Zero: nothing to wait for.
  virtual size_t outstanding() const = 0;

  /// Whether every command would be sent now: all masters are connected.
  virtual bool is_connected() const = 0;
  /// Whether keys are spread over several masters by their hash tags.
  virtual bool is_cluster() const = 0;
  /// Why there is no connection, or why the last one broke; empty while nothing ever went wrong. Without
  /// secrets.
  virtual std::string_view last_error() const = 0;
  /// Redis's clock. It does not jump when this machine's clock is set.
  virtual Moment now() const = 0;
  /// Redis's clock minus this machine's clock.
  virtual Millis clock_offset() const = 0;
  virtual const ClientFigures& figures() const = 0;
};

/// The client over real connections. It connects, and reconnects, from its creation to its destruction; the
/// loop must outlive it. Answers that are still outstanding when it is destroyed are never called.
///
/// Fails only for permanent problems: no address, files of TLS that cannot be read.
Result<std::unique_ptr<Client>> open_client(Loop& loop, ClientOptions options);

// ---- where a cluster keeps a key

inline constexpr uint16_t kSlots = 16384;

/// CRC16 as XMODEM has it, a byte at a time.
inline constexpr std::array<uint16_t, 256> kCrcOfByte = [] {
  std::array<uint16_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t value = byte << 8;
    for (int bit = 0; bit < 8; ++bit) value = (value & 0x8000) != 0 ? (value << 1) ^ 0x1021 : value << 1;
    table[byte] = static_cast<uint16_t>(value);
  }
  return table;
}();

/// Returns the text between the first `{` and the next `}`; the whole key if there is no such text.
constexpr std::string_view hash_tag_of(std::string_view key) {
  const size_t open = key.find('{');
  if (open == std::string_view::npos) return key;
  const size_t close = key.find('}', open + 1);
  if (close == std::string_view::npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

/// The slot in which a cluster keeps a key: CRC16 of its hash tag.
constexpr uint16_t slot_of(std::string_view key) {
  uint16_t value = 0;
  for (const char c : hash_tag_of(key)) {
    const auto byte = static_cast<uint8_t>(c);
    value = static_cast<uint16_t>((value << 8) ^ kCrcOfByte[((value >> 8) ^ byte) & 0xff]);
  }
  return value % kSlots;
}

}  // namespace delayq::net::redis
