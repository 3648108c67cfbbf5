#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace delayq::cli {

/// An HTTP/1.1 request as it came. The views look into the bytes it was read from.
struct ReceivedRequest {
  std::string_view method;
  std::string_view target;
  std::vector<std::pair<std::string_view, std::string_view>> headers;  ///< name, value, in their order
  std::string_view body;
  bool keeps_alive = true;

  std::string unchunked;  ///< what `body` looks into when it came in chunks

  /// The value of the first header with this name, in any case; empty without one.
  std::string_view header(std::string_view name) const;
};

enum class Reading {
  kPartial,         ///< more bytes are needed
  kAsksToContinue,  ///< the same, and whoever sends waits for "100 Continue" first
  kWhole,
  kBroken,  ///< no request that could be answered
};

/// Reads one request off the front of `input` and, when it is whole, takes it away from there. Its bytes must
/// stay where they are as long as the request is used. Headers above 64 KiB and bodies above 65 MiB are
/// broken.
Reading read_request(std::string_view& input, ReceivedRequest& request);

}  // namespace delayq::cli
