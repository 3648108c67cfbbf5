// Any bytes as what callers send to `delayq listen`. Whole requests look into what came; the same bytes in
// two pieces are the same requests; what is partial never becomes whole by itself.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/receiver.h"

namespace {

using delayq::cli::read_request;
using delayq::cli::Reading;
using delayq::cli::ReceivedRequest;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

/// Bodies of the whole requests, in their order; where reading ended is left in `input`.
std::vector<std::string> read_all(std::string_view& input, Reading& last) {
  std::vector<std::string> bodies;
  ReceivedRequest request;
  last = Reading::kPartial;
  while (!input.empty()) {
    const size_t before = input.size();
    last = read_request(input, request);
    if (last != Reading::kWhole) {
      require(input.size() == before);
      break;
    }
    require(input.size() < before);
    require(!request.method.empty() && !request.target.empty());
    for (const auto& header : request.headers) require(!header.first.empty());
    bodies.emplace_back(request.body);
  }
  return bodies;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view all{reinterpret_cast<const char*>(data) + 1, size - 1};
  std::string_view rest = all;
  Reading last{};
  const std::vector<std::string> at_once = read_all(rest, last);

  const size_t cut = all.empty() ? 0 : data[0] * all.size() / 256;
  std::string buffer(all.substr(0, cut));
  std::string_view piece = buffer;
  Reading last_of_first{};
  std::vector<std::string> in_two = read_all(piece, last_of_first);
  if (last_of_first == Reading::kBroken) {
    require(last == Reading::kBroken);
    return 0;
  }
  const std::string joined = std::string(piece) + std::string(all.substr(cut));
  piece = joined;
  for (std::string& body : read_all(piece, last_of_first)) in_two.push_back(std::move(body));
  require(in_two == at_once && (last_of_first == Reading::kBroken) == (last == Reading::kBroken));
  return 0;
}
