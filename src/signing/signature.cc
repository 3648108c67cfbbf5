#include "signing/signature.h"

#include <array>
#include <cassert>
#include <charconv>

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "core/encoding.h"
#include "core/job.h"

namespace delayq::signing {

namespace {

constexpr std::string_view kSecretPrefix = "whsec_";
constexpr std::string_view kVersion = "v1,";
constexpr size_t kMaxKeyBytes = 128;
constexpr size_t kDigestBytes = 32;

using Digest = std::array<uint8_t, kDigestBytes>;

struct FreeMac {
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};

/// One key, ready for use: its set-up costs more than a signature.
class Key {
 public:
  explicit Key(std::string_view bytes) {
    EVP_MAC* mac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
    context_.reset(EVP_MAC_CTX_new(mac));
    EVP_MAC_free(mac);
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                 OSSL_PARAM_construct_end()};
    [[maybe_unused]] const int is_done =
        EVP_MAC_init(context_.get(), reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), params);
    assert(is_done == 1);
  }

  Digest digest(std::string_view id, std::string_view timestamp, std::string_view body) {
    Digest result{};
    EVP_MAC_init(context_.get(), nullptr, 0, nullptr);  // the same key again
    for (const std::string_view part : {id, std::string_view("."), timestamp, std::string_view("."), body}) {
      EVP_MAC_update(context_.get(), reinterpret_cast<const uint8_t*>(part.data()), part.size());
    }
    size_t written = 0;
    EVP_MAC_final(context_.get(), result.data(), &written, result.size());
    assert(written == result.size());
    return result;
  }

 private:
  std::unique_ptr<EVP_MAC_CTX, FreeMac> context_;
};

std::string_view view_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

/// Whether `list`, signatures with a space between them, has this one. Signatures of other versions are
/// ignored.
bool has_signature(std::string_view list, const Digest& right) {
  bool is_there = false;
  while (!list.empty()) {
    const size_t space = std::min(list.find(' '), list.size());
    std::string_view each = list.substr(0, space);
    list.remove_prefix(std::min(space + 1, list.size()));
    if (!each.starts_with(kVersion)) continue;
    const auto bytes = from_base64(each.substr(kVersion.size()));
    if (!bytes || bytes->size() != right.size()) continue;
    is_there |= CRYPTO_memcmp(bytes->data(), right.data(), right.size()) == 0;
  }
  return is_there;
}

}  // namespace

Result<std::string> parse_secret(std::string_view text) {
  if (text.starts_with(kSecretPrefix)) text.remove_prefix(kSecretPrefix.size());
  auto key = from_base64(text);
  if (!key)
    return invalid(
        "a secret is whsec_ and base64 (with its padding), such as `openssl rand -base64 32` prints");
  if (key->empty() || key->size() > kMaxKeyBytes) {
    return invalid(
        fmt::format("a secret is 1 to {} bytes as base64, and 24 to 64 are good ones", kMaxKeyBytes));
  }
  return std::move(*key);
}

struct Signer::Keys {
  std::vector<Key> all;
};

Signer::Signer(std::unique_ptr<Keys> keys) : keys_(std::move(keys)) {}
Signer::Signer(Signer&&) noexcept = default;
Signer& Signer::operator=(Signer&&) noexcept = default;
Signer::~Signer() = default;

Result<Signer> Signer::create(const std::vector<std::string>& secrets) {
  auto keys = std::make_unique<Keys>();
  for (size_t i = 0; i < secrets.size(); ++i) {
    const auto key = parse_secret(secrets[i]);
    if (!key.ok()) {
      Error error = key.error();
      if (secrets.size() > 1) error.detail = fmt::format("number {}: {}", i + 1, error.detail);
      return error;
    }
    keys->all.emplace_back(*key);
  }
  return Signer(std::move(keys));
}

bool Signer::has_secrets() const { return !keys_->all.empty(); }

std::string Signer::sign(const Message& message) {
  std::string signatures;
  const std::string timestamp = fmt::to_string(to_unix_seconds(message.timestamp));
  for (Key& key : keys_->all) {
    if (!signatures.empty()) signatures += ' ';
    signatures.append(kVersion).append(to_base64(view_of(key.digest(message.id, timestamp, message.body))));
  }
  return signatures;
}

std::string_view name_of(Verdict verdict) {
  constexpr std::array<std::string_view, 5> kNames{"verified", "unsigned", "BAD signature", "out of time",
                                                   "not checked"};
  return kNames[static_cast<size_t>(verdict)];
}

Verifier::Verifier(Signer secrets, Millis tolerance) : signer_(std::move(secrets)), tolerance_(tolerance) {}

Verdict Verifier::verify(const SignedHeaders& headers, std::string_view body, Moment now) {
  if (headers.signature.empty()) return Verdict::kUnsigned;
  if (!signer_.has_secrets()) return Verdict::kNotChecked;
  int64_t seconds = 0;
  const char* end = headers.timestamp.data() + headers.timestamp.size();
  const auto [stop, failure] = std::from_chars(headers.timestamp.data(), end, seconds);
  // Ten digits last until the year 2286, and cannot overflow a millisecond.
  const bool is_time =
      failure == std::errc{} && stop == end && seconds >= 0 && headers.timestamp.size() <= 10;
  if (!is_time || headers.id.empty()) return Verdict::kBad;
  bool is_right = false;
  for (Key& key : signer_.keys_->all) {
    is_right |= has_signature(headers.signature, key.digest(headers.id, headers.timestamp, body));
  }
  if (!is_right) return Verdict::kBad;
  const Millis away = now - Moment{std::chrono::seconds{seconds}};
  return away > tolerance_ || away < -tolerance_ ? Verdict::kOutOfTime : Verdict::kVerified;
}

}  // namespace delayq::signing
