// Any bytes from a client: read to the end, or refused with a reason; what the parser waits for is never what
// it has; a command is the same whether it came at once or in parts, and survives being written again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "resp/command_parser.h"
#include "resp/writer.h"

namespace {

using delayq::resp::CommandParser;
using Outcome = CommandParser::Outcome;

constexpr delayq::resp::CommandLimits kLimits{
    .arguments = 64, .argument_bytes = 256, .command_bytes = 512, .inline_bytes = 128};

/// Every beginning of a whole command is partial, and asks for no more than the command has.
void check_parts(std::string_view command) {
  CommandParser parser(kLimits);
  for (size_t size = 0; size < command.size(); ++size) {
    if (parser.next(command.substr(0, size)) != Outcome::kPartial) __builtin_trap();
    if (parser.needed() <= size || parser.needed() > command.size()) __builtin_trap();
  }
}

void check_written_again(const std::vector<std::string_view>& arguments) {
  std::string text;
  delayq::resp::append_command(text, arguments);
  CommandParser parser(kLimits);
  if (parser.next(text) != Outcome::kCommand || parser.arguments() != arguments) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest{reinterpret_cast<const char*>(data), size};
  CommandParser parser(kLimits);
  for (;;) {
    const Outcome outcome = parser.next(rest);
    if (outcome == Outcome::kBroken) {
      if (parser.error().empty()) __builtin_trap();
      return 0;
    }
    if (outcome == Outcome::kPartial) {
      if (parser.needed() <= rest.size()) __builtin_trap();
      return 0;
    }
    if (parser.consumed() == 0 || parser.consumed() > rest.size()) __builtin_trap();
    check_written_again(parser.arguments());
    check_parts(rest.substr(0, parser.consumed()));
    rest.remove_prefix(parser.consumed());
  }
}
