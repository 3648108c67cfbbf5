#include "queue/delivery.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/limits.h"
#include "core/text.h"
#include "signing/signature.h"

namespace delayq {

namespace {

constexpr size_t kSecretBytes = 256;

struct UrlParts {
  std::string_view scheme;
  std::string_view authority;  ///< user name, host and port
};

std::optional<UrlParts> split(std::string_view url) {
  const size_t colon = url.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view rest = url.substr(colon + 3);
  return UrlParts{url.substr(0, colon), rest.substr(0, std::min(rest.size(), rest.find_first_of("/?#")))};
}

/// The offset of the colon before the port, or the size when there is no port.
size_t port_place(std::string_view authority) {
  const size_t colon = authority.rfind(':');
  const bool is_in_address =
      authority.find(']', colon == std::string_view::npos ? 0 : colon) != std::string_view::npos;
  return colon == std::string_view::npos || is_in_address ? authority.size() : colon;
}

/// Brackets must enclose an IPv6 address, with or without a zone; they are not allowed elsewhere.
bool has_right_brackets(std::string_view host) {
  if (host.find_first_of("[]") == std::string_view::npos) return true;
  if (!host.starts_with('[') || host.find(']') != host.size() - 1) return false;
  const std::string_view address = host.substr(1, std::min(host.find('%'), host.size() - 1) - 1);
  return address.find(':') != std::string_view::npos &&
         address.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
}

bool is_port(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size() && port != 0;
}

}  // namespace

Result<size_t> Words::find(std::string_view word) const {
  const auto found = std::find(names.begin(), names.end(), word);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  return invalid(fmt::format("{} is {}: use one of {}", quote(word), unknown, fmt::join(names, ", ")));
}

Status check_redis_key(std::string_view key) {
  if (key.size() > kRedisKeyBytes) {
    return invalid("redis_key",
                   fmt::format("redis_key has {} bytes: at most {} are allowed", key.size(), kRedisKeyBytes));
  }
  const auto is_control = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  };
  if (std::any_of(key.begin(), key.end(), is_control) || !is_utf8(key))
    return invalid("redis_key", "redis_key must be UTF-8 without control characters");
  return {};
}

Status check_kafka_topic(std::string_view name) {
  if (name.size() > kKafkaTopicBytes) {
    return invalid("kafka_topic", fmt::format("kafka_topic has {} bytes: at most {} are allowed", name.size(),
                                              kKafkaTopicBytes));
  }
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (name.empty() || name == "." || name == ".." ||
      name.find_first_not_of(kAllowed) != std::string_view::npos) {
    return invalid(
        "kafka_topic",
        fmt::format("kafka_topic {} is not a name in Kafka: use letters, digits and . _ -", quote(name)));
  }
  return {};
}

Result<CallbackFormat> parse_callback_format(std::string_view word) {
  const Result<size_t> found = kCallbackFormatWords.find(word);
  if (!found) return found.error();
  return static_cast<CallbackFormat>(*found);
}

Status check_callback_method(std::string_view method) {
  if (std::find(kCallbackMethods.begin(), kCallbackMethods.end(), method) != kCallbackMethods.end())
    return {};
  return invalid("callback_method", fmt::format("callback_method {} is not known: one of {}", quote(method),
                                                fmt::join(kCallbackMethods, ", ")));
}

Status check_callback(std::string_view url) {
  if (url.size() > Limits::kCallbackBytes) {
    return invalid("callback", fmt::format("callback has {} bytes: at most {} are allowed", url.size(),
                                           Limits::kCallbackBytes));
  }
  const auto is_bad = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= 0x20 || byte >= 0x7f || c == '\\';
  };
  if (std::any_of(url.begin(), url.end(), is_bad)) {
    return invalid(
        "callback",
        "callback must not have spaces, control characters, backslashes or letters beyond ASCII: write them "
        "as %XX");
  }
  const std::optional<UrlParts> parts = split(url);
  const std::string scheme = parts ? lowered(parts->scheme) : std::string();
  if (scheme != "http" && scheme != "https") {
    return invalid(
        "callback",
        fmt::format("callback {} is not a URL that can be called: https://host/path, or http", quote(url)));
  }
  if (parts->authority.find('@') != std::string_view::npos)
    return invalid("callback", "callback must not have a user's name or a password in it");
  const size_t port = port_place(parts->authority);
  if (port == 0) return invalid("callback", "callback has no host: https://host/path");
  if (const std::string_view host = parts->authority.substr(0, port); !has_right_brackets(host))
    return invalid("callback",
                   fmt::format("callback has {} for a host: an IPv6 address is written [::1]", quote(host)));
  if (port < parts->authority.size() && !is_port(parts->authority.substr(port + 1)))
    return invalid("callback", "callback has no right port: 1 to 65535 is allowed");
  return {};
}

Status check_on_dead(std::string_view where) {
  Status status = is_url(where) ? check_callback(where) : check_topic(where);
  if (status.ok()) return status;
  Error error = status.error();
  error.field = "on_dead";
  error.detail = fmt::format("on_dead must be the name of a topic or a URL: {}", error.detail);
  return error;
}

std::string host_of(std::string_view url) {
  const std::optional<UrlParts> parts = split(url);
  if (!parts) return {};
  std::string host = lowered(parts->authority);
  if (port_place(host) == host.size()) host += lowered(parts->scheme) == "https" ? ":443" : ":80";
  return host;
}

Status check_callback_secrets(const std::vector<std::string>& secrets) {
  if (secrets.size() > kMostCallbackSecrets) {
    return invalid("callback_secrets", fmt::format("callback_secrets: {} of them; at most {} are allowed",
                                                   secrets.size(), kMostCallbackSecrets));
  }
  for (const std::string& secret : secrets) {
    if (secret.size() > kSecretBytes)
      return invalid("callback_secrets",
                     fmt::format("callback_secrets: one has {} bytes: at most {} are allowed", secret.size(),
                                 kSecretBytes));
  }
  if (const auto signer = signing::Signer::create(secrets); !signer.ok())
    return invalid("callback_secrets", "callback_secrets: " + signer.error().detail);
  return {};
}

}  // namespace delayq
