#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library is called so
class App;
class ParseError;
}  // namespace CLI

namespace delayq::cli {

/// Parses a command line, without the program's name, for all of `app`'s commands. What CLI11 would change on
/// the way reaches its option as it was written: CLI11 takes a list's `[a,b]` for two values.
///
/// What follows `--` in `pop` and `bpop` is the command that they run, word by word.
///
/// `help VERB` is `VERB --help`.
///
/// Throws CLI::ParseError like any other use of CLI11.
void parse(CLI::App& app, const std::vector<std::string>& arguments);

/// What to tell somebody whose command line was not understood, line by line: what is wrong, what was
/// probably meant, and where to read more.
std::string explain(const CLI::App& app, const CLI::ParseError& error,
                    const std::vector<std::string>& arguments);

/// The option that takes the words behind `--`, one each.
inline constexpr const char* kExecWord = "--exec-word";

}  // namespace delayq::cli
