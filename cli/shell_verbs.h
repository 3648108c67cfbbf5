#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library is called so
class App;
}  // namespace CLI

namespace delayq::cli {

/// What a shell may offer for the last of `words`, which stand behind the program's name; the last may be
/// empty. Commands, options and enumerated values come from `app`, topics from `topics`, which is only asked
/// when a topic is what is missing.
std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words,
                                     const std::function<std::vector<std::string>()>& topics);

/// The script that makes a shell ask `delayq complete`; empty when we know no such shell.
std::string_view completion_script(std::string_view shell);

/// The manual page in roff, from the tree of commands and the error table.
std::string manual_page(const CLI::App& app);

}  // namespace delayq::cli
