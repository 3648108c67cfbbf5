#include "resp/writer.h"

#include <array>

namespace delayq::resp {

void Writer::number(double value) {
  std::array<char, 40> digits;
  const char* const stop = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  const std::string_view text{digits.data(), static_cast<size_t>(stop - digits.data())};
  if (version_ == Version::k2) return bulk(text);
  line(',', text);
}

void append_command(std::string& out, std::span<const std::string_view> arguments) {
  Writer writer(out, Version::k2);
  writer.array(arguments.size());
  for (const std::string_view argument : arguments) writer.bulk(argument);
}

}  // namespace delayq::resp
