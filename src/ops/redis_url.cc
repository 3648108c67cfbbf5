#include "ops/redis_url.h"

#include <algorithm>

#include <fmt/format.h>

namespace delayq {

Status check_redis_prefix(std::string_view text) {
  const bool is_right = std::all_of(text.begin(), text.end(),
                                    [](char c) { return c > ' ' && c < '\x7f' && c != '{' && c != '}'; });
  return is_right ? Status{} : invalid("a prefix has visible ASCII characters, without { and }");
}

std::string without_password(std::string_view url) {
  const size_t begin = url.find("://");
  const size_t at = url.rfind('@');
  if (begin == std::string_view::npos || at == std::string_view::npos || at < begin) return std::string(url);
  const size_t colon = url.find(':', begin + 3);
  // Without a colon the whole of it may be a password that somebody put there.
  const size_t from = colon < at ? colon + 1 : begin + 3;
  return fmt::format("{}***{}", url.substr(0, from), url.substr(at));
}

}  // namespace delayq
