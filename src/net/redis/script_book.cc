#include "net/redis/script_book.h"

#include <array>

#include <openssl/evp.h>

#include "core/encoding.h"

namespace delayq::net::redis {

const KnownScript& ScriptBook::know(const Script& script) {
  const auto [place, is_new] = scripts_.try_emplace(script.source.data());
  if (is_new) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    EVP_Digest(script.source.data(), script.source.size(), digest.data(), &size, EVP_sha1(), nullptr);
    place->second = {script.source, to_hex({reinterpret_cast<const char*>(digest.data()), size})};
  }
  return place->second;
}

}  // namespace delayq::net::redis
