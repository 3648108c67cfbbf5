#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

/// What a topic or a job may say about its callback: words, and which of them are right.
namespace delayq {

/// What a callback's request looks like, and which answer to it is a success.
enum class CallbackFormat : uint8_t {
  kWebhook,      ///< Standard Webhooks headers, the job's body as it is; any 2xx
  kCloudEvents,  ///< the same with the headers of a CloudEvent in binary mode
  kCallbackApi,  ///< the job as JSON; a 2xx whose body is `ok`
};
inline constexpr std::array<std::string_view, 3> kCallbackFormatNames{"webhook", "cloudevents",
                                                                      "callback-api"};
constexpr std::string_view name_of(CallbackFormat format) {
  return kCallbackFormatNames[static_cast<size_t>(format)];
}
/// The error names the words there are; the caller puts the field's name in front.
Result<CallbackFormat> parse_callback_format(std::string_view word);

/// Requests that have a body.
inline constexpr std::array<std::string_view, 4> kCallbackMethods{"POST", "PUT", "PATCH", "DELETE"};
Status check_callback_method(std::string_view method);

/// An absolute http or https URL without a user's name and password, of at most Limits::kCallbackBytes.
Status check_callback(std::string_view url);

/// "host:port" of a URL that check_callback() finds right, in lower case and with the port always said.
std::string host_of(std::string_view url);

/// A few, as Standard Webhooks writes them: "whsec_" and base64. The error never shows one.
inline constexpr size_t kMostCallbackSecrets = 4;
Status check_callback_secrets(const std::vector<std::string>& secrets);

}  // namespace delayq
