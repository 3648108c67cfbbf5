// Any text: a configuration whose settings are in range, or errors that each name the file and a line. The
// first word of the text is also tried as a key of the command line.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ops/config.h"

namespace {

void check(const delayq::Config& config) {
  for (const auto& [name, settings] : config.topics) {
    if (name != delayq::kDefaultsName && !delayq::check_topic(name)) __builtin_trap();
    if (!delayq::check_settings(settings)) __builtin_trap();
  }
  const auto address =
      delayq::parse_address(delayq::to_string(config.server.addresses[delayq::ProtocolKind::kResp]));
  if (!address || !(*address == config.server.addresses[delayq::ProtocolKind::kResp])) __builtin_trap();
  if (config.limits.body_bytes > delayq::Limits::kMaxBodyBytes) __builtin_trap();
}

void check_option(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return;
  delayq::Config config;
  const delayq::Status status = delayq::set_option(config, text.substr(0, equals), text.substr(equals + 1));
  if (!status && (status.error().detail.empty() || !(config == delayq::Config{}))) __builtin_trap();
  check(config);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const delayq::ConfigOutcome outcome = delayq::parse_config(text, "f");
  for (const std::string& error : outcome.errors) {
    if (!error.starts_with("f:")) __builtin_trap();
  }
  if (outcome.ok()) check(outcome.config);
  check_option(text);
  return 0;
}
