#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): the library is called so
class App;
}  // namespace CLI

namespace delayq::cli {

/// The manual page in roff, from the tree of commands and the error table.
std::string manual_page(const CLI::App& app);

}  // namespace delayq::cli
