#pragma once

#include <string>
#include <string_view>

#include "core/error.h"
#include "net/stream.h"

struct ssl_st;

namespace delayq::net {

/// The first reason that OpenSSL has on this thread's list, which is emptied.
std::string tls_reason();

/// What OpenSSL has against the file that the setting `tls.KEY` names.
Error tls_problem(std::string_view key, const std::string& file);

/// One end of a TLS connection over a socket that does not block.
class TlsStream final : public Stream {
 public:
  /// Takes `tls`, which has its socket and knows which end it is. Null: nothing can be sent or received.
  explicit TlsStream(ssl_st* tls) : tls_(tls) {}
  ~TlsStream() override;
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  /// One record is at most 16 KiB: takes as many as there are.
  ssize_t receive(char* buffer, size_t size) override;
  ssize_t send(const char* bytes, size_t size) override;
  bool has_more() const override;
  bool waits_for_room() const override { return waits_for_room_; }
  bool waits_for_input() const override { return waits_for_input_; }
  bool is_greeting() const override;
  std::string problem() const override { return problem_; }
  void finish() override;

 private:
  ssize_t explain(int result);
  ssize_t broken();

  ssl_st* tls_;
  bool waits_for_room_ = false;   ///< after receive() or send()
  bool waits_for_input_ = false;  ///< after send()
  bool is_broken_ = false;
  std::string problem_;
};

}  // namespace delayq::net
