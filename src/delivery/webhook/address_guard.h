#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <vector>

#include "core/result.h"

namespace delayq::webhook {

/// An IPv4 or IPv6 address. An IPv4 address is held as the IPv6 address that stands for it (::ffff:a.b.c.d),
/// so that there is one kind to compare.
class IpAddress {
 public:
  /// "10.0.0.1" or "fe80::1": the plain form only, no brackets, no octal.
  static std::optional<IpAddress> parse(std::string_view text);
  /// Nothing for a family that is not IP.
  static std::optional<IpAddress> from(const sockaddr& address);

  bool is_v4() const;
  /// The IPv4 address that this IPv6 address leads to: mapped (::ffff:0:0/96), compatible (::/96), translated
  /// (::ffff:0:0:0/96), NAT64 (64:ff9b::/96, and the local-use 64:ff9b:1::/48 with the address at its end)
  /// and 6to4 (2002::/16). Nothing for others, and for IPv4.
  std::optional<IpAddress> embedded_v4() const;
  std::string to_string() const;

  bool operator==(const IpAddress&) const = default;

 private:
  friend class Network;
  static IpAddress v4(const uint8_t* four_bytes);

  struct Bytes {
    uint8_t at[16] = {};
    bool operator==(const Bytes&) const = default;
  } bytes_;
};

/// A range of addresses: "10.0.0.0/8", "fd00::/8", or one address. A range has addresses of one kind only:
/// "::/0" is every IPv6 address and no IPv4 address.
class Network {
 public:
  /// The error says what would be right. Bits beyond the prefix must be zero: else the text may not mean what
  /// its author thinks.
  static Result<Network> parse(std::string_view text);

  bool contains(const IpAddress& address) const;

 private:
  IpAddress base_;
  int prefix_ = 0;  ///< of 128
};

/// Decides which addresses may be connected to. It is asked after names are resolved: a name can lead to any
/// address.
///
///  1. Always refused, whatever the lists say: unspecified (0.0.0.0/8, ::), link-local (169.254.0.0/16 and
///     fe80::/10, where clouds keep their credentials), multicast (224.0.0.0/4, ff00::/8), broadcast
///     (255.255.255.255) and the rest of 240.0.0.0/4, which is reserved.
///  2. What is on the deny list is refused.
///  3. With an allow list, all that is not on it is refused.
///  4. All others are allowed: loopback and private networks too, because that is where backends live.
///
/// For an IPv6 address that only stands for an IPv4 address both are decided: it is refused if either is, and
/// it is on the allow list if either is.
class AddressGuard {
 public:
  AddressGuard() = default;
  /// Each text as Network::parse() reads it; the error names the list and the entry.
  static Result<AddressGuard> create(const std::vector<std::string>& allow,
                                     const std::vector<std::string>& deny);

  /// Returns nothing when it may be connected to, else the reason: "169.254.169.254 is link-local".
  std::optional<std::string> refusal(const IpAddress& address) const;

 private:
  std::vector<Network> allow_;
  std::vector<Network> deny_;
};

}  // namespace delayq::webhook
