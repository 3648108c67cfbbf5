#include "cli/completion.h"

#include <algorithm>

#include <CLI/CLI.hpp>

namespace delayq::cli {

namespace {

constexpr std::string_view kBash =
    R"sh(# Completion of delayq for bash. In ~/.bashrc: eval "$(delayq completion bash)"
_delayq() {
  local line="${COMP_LINE:0:COMP_POINT}" last before
  local -a words
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  last="${words[-1]}"
  local IFS=$'\n'
  COMPREPLY=($("${words[0]}" complete -- "${words[@]:1}" 2>/dev/null))
  # For bash a word ends at a colon, and what stands before is there already.
  if [[ $last == *:* && $COMP_WORDBREAKS == *:* ]]; then
    before="${last%"${last##*:}"}"
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
  fi
}
complete -o default -F _delayq delayq
)sh";

constexpr std::string_view kZsh = R"sh(#compdef delayq
# Completion of delayq for zsh. In ~/.zshrc, behind compinit: eval "$(delayq completion zsh)"
_delayq() {
  local found
  local -a candidates
  found=$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
  candidates=("${(@f)found}")
  if [[ -n $found ]]; then
    compadd -a candidates
  else
    _files
  fi
}
# From a folder of completions this file is the function, and called; from eval it only defines it.
if [[ ${funcstack[1]} == _delayq ]]; then
  _delayq "$@"
else
  compdef _delayq delayq
fi
)sh";

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

/// What a validator lists as {a,b,c} is part of the type's name.
std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{');
  const size_t end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

bool is_visible(const CLI::Option& option) { return !option.get_group().empty(); }

/// How far into the command line the words before the last one are.
class Place {
 public:
  explicit Place(const CLI::App& app) : app_(&app) {}

  void pass(const std::string& word) {
    if (awaited_ != nullptr) {
      awaited_ = nullptr;
    } else if (word == "--") {
      is_over_ = true;
    } else if (word.starts_with("-")) {
      if (word.find('=') != std::string::npos) return;
      const CLI::Option* const option = app_->get_option_no_throw(word);
      if (option != nullptr && takes_value(*option) && option->get_items_expected_min() > 0)
        awaited_ = option;
    } else if (const CLI::App* const command = positionals_ == 0 ? command_named(word) : nullptr) {
      app_ = command;
    } else {
      ++positionals_;
    }
  }

  bool is_over() const { return is_over_; }
  /// Whose value comes next; null: none's.
  const CLI::Option* awaited() const { return awaited_; }
  const CLI::App& app() const { return *app_; }

  /// The positional that comes next; null: none.
  const CLI::Option* positional() const {
    size_t left = positionals_;
    for (const CLI::Option* const option : app_->get_options()) {
      if (!option->get_positional()) continue;
      const auto most = static_cast<size_t>(option->get_items_expected_max());
      if (left < most) return option;
      left -= most;
    }
    return nullptr;
  }

 private:
  const CLI::App* command_named(const std::string& word) const {
    const auto found = app_->get_subcommands([&](const CLI::App* each) { return each->get_name() == word; });
    return found.empty() ? nullptr : found.front();
  }

  const CLI::App* app_;
  const CLI::Option* awaited_ = nullptr;
  size_t positionals_ = 0;
  bool is_over_ = false;
};

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options()) {
    if (!is_visible(*option)) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    if (!option->get_lnames().empty()) continue;
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return names;
}

}  // namespace

std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words,
                                     const std::function<std::vector<std::string>()>& topics) {
  if (words.empty()) return commands_of(app);
  Place place(app);
  for (size_t i = 0; i + 1 < words.size(); ++i) place.pass(words[i]);
  if (place.is_over()) return {};
  const std::string& begun = words.back();
  std::vector<std::string> found;
  if (place.awaited() != nullptr) {
    found = values_of(*place.awaited());
  } else if (begun.starts_with("-")) {
    found = options_of(place.app());
  } else if (const CLI::Option* const positional = place.positional(); positional != nullptr) {
    found = positional->get_name(true) == "TOPIC" ? topics() : values_of(*positional);
  } else {
    found = commands_of(place.app());
  }
  std::erase_if(found, [&](const std::string& each) { return !each.starts_with(begun); });
  std::sort(found.begin(), found.end());
  return found;
}

std::string_view completion_script(std::string_view shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  return {};
}

}  // namespace delayq::cli
