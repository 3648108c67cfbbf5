#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace delayq {

/// OK for the patterns that HostNames accepts: a name ("delayq.example.com"), all names below one
/// ("*.example.com"), or any ("*").
Status check_host_pattern(std::string_view pattern);

/// The names that a server accepts in Host headers. A web page can make its own name resolve to any address
/// (DNS rebinding). For the browser the page is then the same site as the server at that address, and only
/// the name in the request shows the difference.
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
  std::vector<std::string> patterns_;  ///< in lower case
  bool accepts_all_ = false;           ///< "*" is one of them
};

}  // namespace delayq
