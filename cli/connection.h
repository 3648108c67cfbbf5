#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cli.h"
#include "core/result.h"
#include "core/time.h"
#include "resp/value.h"

struct ssl_ctx_st;
struct ssl_st;

namespace delayq::cli {

class Tls;

/// While it exists, whoever waits for a server on this thread can be called away from it: the wait watches
/// these descriptors (-1: none) too, and calls `is_over` when one of them is readable. If that returns true,
/// the wait ends as if its time had passed.
class [[nodiscard]] WaitGuard {
 public:
  WaitGuard(std::array<int, 2> descriptors, std::function<bool()> is_over);
  ~WaitGuard();
  WaitGuard(const WaitGuard&) = delete;
  WaitGuard& operator=(const WaitGuard&) = delete;

 private:
  friend bool wait_for(int socket, short events, std::chrono::steady_clock::time_point deadline);

  std::array<int, 2> descriptors_;
  std::function<bool()> is_over_;
};

/// Bytes to and from a server, over TCP, with or without TLS. Blocks, but never past the given deadline.
/// Every error is kUnavailable and names the other end. Not thread-safe.
class Stream {
 public:
  using Clock = std::chrono::steady_clock;

  static Result<Stream> open(const Server& server, Clock::time_point deadline);

  ~Stream();
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&&) = delete;

  Status send(std::string_view bytes, Clock::time_point deadline);
  /// Appends the bytes that arrive, at least one. Returns false if the deadline passed first.
  Result<bool> receive(std::string& input, Clock::time_point deadline);

  /// Of the other end, for messages.
  const std::string& name() const { return name_; }
  int descriptor() const { return socket_; }

 private:
  Stream(int socket, std::string name);

  Status shake_hands(const Server& server, Clock::time_point deadline);
  Status send_raw(std::string_view bytes, Clock::time_point deadline);
  Result<bool> receive_plain(std::string& input, Clock::time_point deadline);
  Result<bool> receive_raw(std::string& input, Clock::time_point deadline);

  int socket_;
  std::string name_;
  std::unique_ptr<Tls> tls_;  ///< null: none
  bool has_heard_ = false;    ///< anything at all
};

/// A client's end of TLS as bytes in and bytes out, without a socket. After each call, send what outgoing()
/// returns.
class Tls {
 public:
  /// kInvalid when one of the files cannot be used.
  static Result<Tls> create(const Server& server);

  /// Returns true when done, false when it needs more bytes from the other side. Fails with kUnavailable,
  /// with what to do about it, if the other side is not trusted or does not speak TLS.
  Result<bool> shake_hands();

  /// Takes bytes that were received.
  void take(std::string_view bytes);
  /// Appends the decrypted bytes. Returns false when the other side has closed the connection.
  Result<bool> decrypt(std::string& plain);
  Status encrypt(std::string_view plain);
  /// Returns, and removes, the bytes to send.
  std::string outgoing();

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
    void operator()(ssl_st* session) const;
  };

  Tls() = default;
  Error failed() const;

  std::unique_ptr<ssl_ctx_st, Free> context_;
  std::unique_ptr<ssl_st, Free> session_;
};

/// One connection to a server: sends commands and returns their replies in the same order. Blocks, but never
/// longer than the given time. Not thread-safe.
class Connection {
 public:
  using Clock = Stream::Clock;

  /// Authenticates if there is a token. kUnavailable, with what to do about it, if there is no answer within
  /// `patience`; kUnauthorized if the token is refused.
  static Result<Connection> open(const Server& server, Millis patience);
  /// Over TCP, without a token.
  static Result<Connection> open(const Address& address, Millis patience);

  /// Sends a command and waits for its reply. After an error the connection cannot be used any more: a late
  /// reply would be taken for the next one.
  Result<resp::Value> ask(std::span<const std::string_view> command, Millis patience);
  /// The same for several that are sent together. Their replies must fit into the megabyte that a server
  /// keeps for a client that does not read.
  Result<std::vector<resp::Value>> ask_all(std::span<const std::vector<std::string>> commands,
                                           Millis patience);

  // ---- push messages
  /// Sends a command whose reply hear() will return.
  Status send(std::span<const std::string_view> command, Millis patience);
  /// Takes what has arrived, without waiting: appends push messages and replies to `heard`.
  Status hear(std::vector<resp::Value>& heard);
  /// Readable when there is something to hear.
  int descriptor() const { return stream_.descriptor(); }

 private:
  explicit Connection(Stream stream) : stream_(std::move(stream)) {}

  Status introduce(const std::string& token, Millis patience);
  Result<resp::Value> read_reply(Clock::time_point deadline, Millis patience);

  Stream stream_;
  std::string input_;
};

}  // namespace delayq::cli
