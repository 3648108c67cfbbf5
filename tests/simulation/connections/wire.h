#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/types.h>

#include "core/random.h"
#include "net/stream.h"

struct bio_st;

namespace delayq::connections {

/// A property was broken inside a call, which must not go on.
class Broken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The network between one client and the server. Bytes arrive in any pieces, and only so many may be on
/// their way.
class Wire {
 public:
  Wire(Random& random, size_t capacity) : random_(random), capacity_(capacity) {}

  // ---- the server's end: as a socket that does not block
  ssize_t receive(char* buffer, size_t size);
  ssize_t send(const char* bytes, size_t size);
  bool is_readable() const { return !to_server_.empty() || client_ended_ || is_reset_ || is_closed_; }
  bool is_writable() const { return to_client_.size() < capacity_ || is_reset_ || is_closed_; }
  void end_by_server() { server_ended_ = true; }
  void close_by_server();

  // ---- the client's end
  /// Returns how many of the bytes are on their way now.
  size_t put(std::string_view bytes);
  /// Takes at most so many bytes that have arrived.
  std::string take(size_t most);
  void end_by_client() { client_ended_ = true; }
  /// Everything that is on its way is lost.
  void reset();
  bool is_over_for_client() const { return to_client_.empty() && (server_ended_ || is_closed_ || is_reset_); }
  bool has_bytes_for_client() const { return !to_client_.empty(); }

  /// What the server did that no socket allows; empty: nothing. (OpenSSL is in between: nothing can be
  /// thrown.)
  const std::string& violation() const { return violation_; }

  /// Grows with every byte that the server received or sent, and with the end of either.
  uint64_t progress() const { return progress_; }

 private:
  size_t piece(size_t most);
  ssize_t violated(const char* how);

  Random& random_;
  size_t capacity_;
  std::string to_server_;
  std::string to_client_;
  bool client_ended_ = false;
  bool server_ended_ = false;
  bool is_reset_ = false;
  bool is_closed_ = false;
  bool saw_end_ = false;
  uint64_t progress_ = 0;
  std::string violation_;
};

/// The wire as a stream of plain bytes.
class WireStream final : public net::Stream {
 public:
  explicit WireStream(Wire& wire) : wire_(wire) {}
  ssize_t receive(char* buffer, size_t size) override { return wire_.receive(buffer, size); }
  ssize_t send(const char* bytes, size_t size) override { return wire_.send(bytes, size); }

 private:
  Wire& wire_;
};

/// The wire as what OpenSSL reads from and writes to.
bio_st* new_wire_bio(Wire& wire);

/// Watches how a session uses its stream.
class CheckedStream : public net::Stream {
 public:
  explicit CheckedStream(std::unique_ptr<net::Stream> inner) : inner_(std::move(inner)) {}

  /// A new event: how many calls one event may make is bounded.
  void begin_event() { calls_ = 0; }

  ssize_t receive(char* buffer, size_t size) override;
  ssize_t send(const char* bytes, size_t size) override;
  bool has_more() const override { return inner_->has_more(); }
  bool waits_for_room() const override { return inner_->waits_for_room(); }
  bool waits_for_input() const override { return inner_->waits_for_input(); }
  bool is_greeting() const override { return inner_->is_greeting(); }
  std::string problem() const override { return inner_->problem(); }
  void finish() override { inner_->finish(); }

 private:
  void count_call();

  std::unique_ptr<net::Stream> inner_;
  uint64_t calls_ = 0;
};

}  // namespace delayq::connections
