#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace delayq {

/// OK for what HostNames understands: a name ("delayq.example.com"), all names below one ("*.example.com"),
/// or any ("*").
Status check_host_pattern(std::string_view pattern);

/// The names by which a server wants to be asked. A page on the web can point a name of its own at any
/// address (DNS rebinding) and is then, for the browser, the same site as the server behind that address;
/// only the name in the request tells.
class HostNames {
 public:
  /// Accepts every name.
  HostNames() : HostNames(std::vector<std::string>{"*"}) {}
  explicit HostNames(const std::vector<std::string>& patterns);

  /// `host` is the value of a Host header: a name or an address, with or without a port. Besides the
  /// configured names, accepts localhost, which is always this machine, and every numeric address, which does
  /// not depend on the DNS of others.
  bool accepts(std::string_view host) const;

 private:
  std::vector<std::string> patterns_;  ///< in small letters
  bool accepts_all_ = false;           ///< "*" is one of them
};

}  // namespace delayq
