#pragma once

#include <string>

namespace delayq::resp {

/// docs/reference/resp.md, from the command table and the error table.
std::string command_reference();

}  // namespace delayq::resp
