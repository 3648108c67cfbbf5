#include "resp/info.h"

namespace delayq::resp {

std::string_view info_line(std::string_view info, std::string_view name) {
  for (size_t at = info.find(name); at != std::string_view::npos; at = info.find(name, at + 1)) {
    const bool begins_line = at == 0 || info[at - 1] == '\n';
    const size_t colon = at + name.size();
    if (!begins_line || colon >= info.size() || info[colon] != ':') continue;
    const std::string_view rest = info.substr(colon + 1);
    return rest.substr(0, rest.find_first_of("\r\n"));
  }
  return {};
}

}  // namespace delayq::resp
