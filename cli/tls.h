#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cli/server.h"
#include "core/result.h"

struct ssl_ctx_st;
struct ssl_st;

namespace delayq::cli {

/// A client's end of TLS as bytes in and bytes out: it knows no socket. Whatever it was told, `outgoing()`
/// may have grown and is to be sent.
class Tls {
 public:
  /// kInvalid when one of the files cannot be used.
  static Result<Tls> create(const Server& server);

  /// True when done; false when it needs more of the other side's bytes. kUnavailable, with what to do about
  /// it, when the other side is not to be trusted or speaks no TLS.
  Result<bool> shake_hands();

  /// Bytes that came.
  void take(std::string_view bytes);
  /// Appends what they mean; false when the other side has ended the conversation.
  Result<bool> decrypt(std::string& plain);
  Status encrypt(std::string_view plain);
  /// What is to be sent; empty afterwards.
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

}  // namespace delayq::cli
