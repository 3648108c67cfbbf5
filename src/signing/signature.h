#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"

/// Signatures as Standard Webhooks (v1) describes them: HMAC-SHA256 of "id.timestamp.body". The server makes
/// them, `delayq listen` verifies them, and both are here so that they cannot differ.
namespace delayq::signing {

inline constexpr std::string_view kIdHeader = "webhook-id";
inline constexpr std::string_view kTimestampHeader = "webhook-timestamp";
inline constexpr std::string_view kSignatureHeader = "webhook-signature";

/// The key in "whsec_<base64>" or "<base64>": 1 to 128 bytes. An error says what is wrong and never shows the
/// text.
Result<std::string> parse_secret(std::string_view text);

/// What is signed. The timestamp is that of the attempt, in whole Unix seconds; the id stays the same over
/// retries.
struct Message {
  std::string_view id;
  Moment timestamp;
  std::string_view body;
};

/// Signs with one key, or during a rotation with several. Not for two threads at once.
class Signer {
 public:
  /// Reads each secret with parse_secret(); an error names which one is wrong. No secrets: nothing is signed.
  static Result<Signer> create(const std::vector<std::string>& secrets);
  Signer(Signer&&) noexcept;
  Signer& operator=(Signer&&) noexcept;
  ~Signer();

  bool has_secrets() const;
  /// The value of the signature header, one signature per secret: "v1,<base64> v1,<base64>". Empty without
  /// secrets.
  std::string sign(const Message& message);

 private:
  struct Keys;
  friend class Verifier;
  explicit Signer(std::unique_ptr<Keys> keys);

  std::unique_ptr<Keys> keys_;
};

/// The three headers as received; empty where one is missing.
struct SignedHeaders {
  std::string_view id;
  std::string_view timestamp;
  std::string_view signature;
};

enum class Verdict : uint8_t {
  kVerified,    ///< one of the signatures is made with one of the secrets
  kUnsigned,    ///< there is no signature header
  kBad,         ///< the signature, or the headers it needs, are wrong
  kOutOfTime,   ///< signed correctly, but too long ago or too far in the future: perhaps a replay
  kNotChecked,  ///< there are no secrets to check with
};

/// A word for a person: "verified".
std::string_view name_of(Verdict verdict);

/// Checks signatures. Compares them in constant time. Not for two threads at once.
class Verifier {
 public:
  static constexpr Millis kTolerance = std::chrono::minutes(5);

  explicit Verifier(Signer secrets, Millis tolerance = kTolerance);

  Verdict verify(const SignedHeaders& headers, std::string_view body, Moment now);

 private:
  Signer signer_;
  Millis tolerance_;
};

}  // namespace delayq::signing
