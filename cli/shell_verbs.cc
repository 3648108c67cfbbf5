#include <algorithm>
#include <ostream>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/connection.h"
#include "cli/verb.h"
#include "core/error.h"

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

/// The position in the command line after the words before the last one: which command they name, and what
/// may come next.
class CommandLinePosition {
 public:
  explicit CommandLinePosition(const CLI::App& app) : app_(&app) {}

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
  /// The option whose value is expected next; null: none.
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

/// Whose names a positional takes; nullopt: it takes none.
std::optional<NamesOf> names_for(const CLI::App& command, const CLI::Option& positional) {
  const std::string name = positional.get_name(true);
  if (name == "TOPIC") return NamesOf::kTopics;
  if (name == "SETTING") return NamesOf::kSettings;
  const CLI::App* const group = command.get_parent();
  if (name == "NAME" && group != nullptr && group->get_name() == "schedule") return NamesOf::kSchedules;
  return std::nullopt;
}

}  // namespace

std::vector<std::string> completions(const CLI::App& app, const std::vector<std::string>& words,
                                     const std::function<std::vector<std::string>(NamesOf)>& names) {
  if (words.empty()) return commands_of(app);
  CommandLinePosition position(app);
  for (size_t i = 0; i + 1 < words.size(); ++i) position.pass(words[i]);
  if (position.is_over()) return {};
  const std::string& begun = words.back();
  std::vector<std::string> found;
  if (position.awaited() != nullptr) {
    const bool is_topic = position.awaited()->check_lname("topic");
    found = is_topic ? names(NamesOf::kTopics) : values_of(*position.awaited());
  } else if (begun.starts_with("-")) {
    found = options_of(position.app());
  } else if (const CLI::Option* const positional = position.positional(); positional != nullptr) {
    const std::optional<NamesOf> wanted = names_for(position.app(), *positional);
    found = wanted ? names(*wanted) : values_of(*positional);
  } else {
    found = commands_of(position.app());
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

namespace {

constexpr std::string_view kServerGroup = "Server";

/// Escapes text for roff: no line is taken for a request, and hyphens can be copied.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else if (c == '~') {
      out += "\\(ti";
    } else if (c == '^') {
      out += "\\(ha";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

std::string sentence(std::string text) {
  if (!text.empty() && text.back() != '.') text += '.';
  return roff(text);
}

/// "--id", with all its names.
std::string names_of(const CLI::Option& option) {
  std::string names;
  const auto add = [&](const std::string& name) {
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
  };
  for (const std::string& name : option.get_snames()) add("-" + name);
  for (const std::string& name : option.get_lnames()) add("--" + name);
  return names;
}

std::string value_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return {};
  const std::string type = option.get_type_name();
  return type.empty() || type == "TEXT" ? " \\fIVALUE\\fR" : fmt::format(" \\fI{}\\fR", roff(type));
}

void append_option_text(std::string& out, const CLI::Option& option) {
  out += ".TP\n";
  if (option.get_positional()) {
    out += fmt::format("\\fI{}\\fR\n", roff(option.get_name(true)));
  } else {
    out += names_of(option) + value_of(option) + "\n";
  }
  std::string text = option.get_description();
  if (!option.get_default_str().empty()) text += fmt::format(" [{}]", option.get_default_str());
  out += sentence(text) + "\n";
}

bool is_help(const CLI::Option& option) { return option.check_lname("help"); }

/// "TOPIC [DELAY] [BODY] [options]".
std::string synopsis(const CLI::App& command) {
  std::string text;
  bool has_options = false;
  for (const CLI::Option* const option : command.get_options()) {
    if (!option->get_positional()) {
      has_options = has_options || !is_help(*option);
      continue;
    }
    const std::string name = fmt::format("\\fI{}\\fR", roff(option->get_name(true)));
    const std::string_view more = option->get_items_expected_max() > 1 ? " ..." : "";
    text += option->get_required() ? fmt::format(" {}{}", name, more) : fmt::format(" [{}{}]", name, more);
  }
  return text + (has_options ? " [\\fIoptions\\fR]" : "");
}

void append_command(std::string& out, const CLI::App& command, const std::string& before) {
  const std::string name = before + command.get_name();
  const auto inner = command.get_subcommands([](const CLI::App*) { return true; });
  if (inner.empty() || command.get_require_subcommand_min() == 0) {
    out += fmt::format(".SS {}\n\\fBdelayq {}\\fR{}\n.PP\n{}\n", roff(name), roff(name), synopsis(command),
                       sentence(command.get_description()));
    for (const bool positional : {true, false}) {
      for (const CLI::Option* const option : command.get_options()) {
        if (option->get_positional() != positional || option->get_group().empty() || is_help(*option))
          continue;
        if (option->get_group() != kServerGroup) append_option_text(out, *option);
      }
    }
  }
  for (const CLI::App* const each : inner) append_command(out, *each, name + " ");
}

std::vector<const CLI::App*> visible_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

void append_server_options(std::string& out, const CLI::App& app) {
  out +=
      ".SH SERVER OPTIONS\nEvery command that asks a server has these. Any option of TLS means that TLS is "
      "spoken.\n";
  for (const CLI::App* const command : visible_commands(app)) {
    bool found = false;
    for (const CLI::Option* const option : command->get_options()) {
      if (option->get_group() != kServerGroup) continue;
      append_option_text(out, *option);
      found = true;
    }
    if (found) return;
  }
}

void append_exit_codes(std::string& out) {
  out +=
      ".SH EXIT STATUS\n.TP\n\\fB0\\fR\nIt is done.\n.TP\n\\fB1\\fR\nThe command of \\fB\\-\\-exec\\fR "
      "failed for "
      "a job, \\fBdoctor\\fR found a problem, or the output could not be written.\n";
  for (const ErrorTraits& traits : kErrorTable) {
    std::string name(traits.name);
    for (char& c : name) c = c == '_' ? ' ' : c;
    out += fmt::format(".TP\n\\fB{}\\fR\nThe error is \\(lq{}\\(rq.{}\n", traits.exit_code, name,
                       traits.retryable ? " The same may succeed later." : "");
  }
}

constexpr std::string_view kDescription = R"(.SH DESCRIPTION
delayq holds a job until its time, then hands it over.
\fBdelayq serve\fR runs the server; the other commands are its clients, or work on files.
Without a command delayq is \fBdelayq serve\fR.
.PP
Output is for a person on a terminal, and JSON otherwise, one object on a line; \fB\-\-json\fR asks for JSON.
A duration is \fB250ms\fR, \fB30s\fR, \fB15m\fR, \fB1h30m\fR, \fB7d\fR, or a bare number of seconds.
)";

constexpr std::string_view kEnd = R"(.SH ENVIRONMENT
.TP
\fBDELAYQ_RESP\fR
Where the server listens for RESP, unless \fB\-\-server\fR is given.
.TP
\fBDELAYQ_TOKEN\fR
The token, unless \fB\-\-token\fR is given.
.TP
\fBDELAYQ_CA\fR
The certificates to trust, unless \fB\-\-ca\fR is given.
.PP
A command that is run for a job by \fB\-\-exec\fR has its body on standard input, and
\fBDELAYQ_TOPIC\fR, \fBDELAYQ_ID\fR, \fBDELAYQ_ATTEMPT\fR, \fBDELAYQ_LEASE\fR and \fBDELAYQ_DUE_AT\fR;
each header of the job is \fBDELAYQ_HEADER_\fINAME\fR.
The settings of the server are in variables, too: see the reference of the configuration.
.SH EXAMPLES
.nf
delayq push order 30m \(aq{"uid":1}\(aq \-\-id order:1
delayq cancel order order:1
delayq push mail 0 \-\-lines addresses.txt
delayq schedule set nightly \-\-cron "0 2 * * *" \-\-zone Europe/Berlin \-\-topic report \(aq{}\(aq
delayq pop mail \-\-exec ./send\-mail \-\-workers 4 \-\-forever
delayq top
.fi
)";

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string out = fmt::format(
      ".\\\" Written by `delayq manual`.\n.TH DELAYQ 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\ndelayq \\- "
      "hold jobs until their time\n.SH SYNOPSIS\n\\fBdelayq\\fR \\fIcommand\\fR [\\fIargument\\fR ...]\n",
      roff(app.version()));
  out += kDescription;
  out += ".SH COMMANDS\n";
  for (const CLI::App* const command : visible_commands(app)) append_command(out, *command, "");
  append_server_options(out, app);
  append_exit_codes(out);
  out += kEnd;
  return out;
}

// The verbs completion, complete and manual.

namespace {

/// Short, because the user has pressed a key and waits.
constexpr Millis kPatience{300};
constexpr int kMostPages = 10;

class OfTheTree : public Verb {
 public:
  bool is_client() const override { return false; }
  void add_options(CLI::App& app) override { root_ = app.get_parent(); }

 protected:
  const CLI::App& root() const { return *root_; }

 private:
  const CLI::App* root_ = nullptr;
};

class Completion final : public OfTheTree {
 public:
  std::string_view name() const override { return "completion"; }
  std::string_view help() const override { return "Print the completion script of a shell"; }
  void add_options(CLI::App& app) override {
    OfTheTree::add_options(app);
    app.add_option("SHELL", shell_, "The shell")
        ->required()
        ->check(CLI::IsMember(std::vector<std::string>{"bash", "zsh"}));
  }

  Status run(const Session& session) override {
    session.world.out << completion_script(shell_);
    return {};
  }

 private:
  std::string shell_;
};

/// Called by the completion scripts.
class Complete final : public OfTheTree {
 public:
  std::string_view name() const override { return "complete"; }
  std::string_view help() const override { return "Print what may stand in the place of the last word"; }
  bool is_hidden() const override { return true; }
  void add_options(CLI::App& app) override {
    OfTheTree::add_options(app);
    app.add_option("WORD", words_, "The words so far");
  }

  Status run(const Session& session) override {
    const auto names = [&](NamesOf what) { return names_of_server(session.world, what); };
    for (const std::string& each : completions(root(), words_, names)) session.world.out << each << "\n";
    return {};
  }

 private:
  /// Returns none when the server does not answer soon.
  std::vector<std::string> names_of_server(const Surroundings& world, NamesOf what) const {
    ServerOptions options;
    for (size_t i = 0; i + 1 < words_.size(); ++i) {
      if (words_[i] == "--server" || words_[i] == "--resp") options.address = words_[i + 1];
    }
    const Result<Server> server = server_of(options, world.variable);
    if (!server) return {};
    Result<Connection> connection = Connection::open(*server, kPatience);
    std::vector<std::string> names;
    if (what == NamesOf::kSettings && connection) return names_of_settings(*connection);
    std::string cursor;
    for (int page = 0; page < kMostPages && connection; ++page) {
      std::vector<std::string_view> command{"TOPICS", cursor, "1000"};
      if (what == NamesOf::kSchedules) command = {"SCHEDULE", "LIST", "COUNT", "1000", "AFTER", cursor};
      const Result<resp::Value> reply = connection->ask(command, kPatience);
      if (!reply || reply->items.size() != 2) break;
      for (const resp::Value& row : reply->items[1].items) {
        if (row.items.empty()) continue;
        const resp::Value* const name = what == NamesOf::kSchedules ? row.find("name") : &row.items.front();
        if (name != nullptr) names.push_back(name->text);
      }
      cursor = reply->items[0].text;
      if (cursor.empty()) break;
    }
    return names;
  }

  static std::vector<std::string> names_of_settings(Connection& connection) {
    const std::vector<std::string_view> command{"SETTINGS", "GET", "*"};
    const Result<resp::Value> reply = connection.ask(command, kPatience);
    std::vector<std::string> names;
    for (size_t i = 0; reply && i + 1 < reply->items.size(); i += 2) {
      std::string name = reply->items[i].text;
      constexpr std::string_view kNumberOf = "_count";  // of secrets: it is set by another name
      if (name.ends_with(kNumberOf)) name.replace(name.size() - kNumberOf.size(), kNumberOf.size(), "s");
      names.push_back(std::move(name));
    }
    return names;
  }

  std::vector<std::string> words_;
};

class Manual final : public OfTheTree {
 public:
  std::string_view name() const override { return "manual"; }
  std::string_view help() const override { return "Print the manual page: delayq manual | man -l -"; }
  bool is_hidden() const override { return true; }
  Status run(const Session& session) override {
    session.world.out << manual_page(root());
    return {};
  }
};

}  // namespace

void add_shell_verbs(Verbs& verbs) {
  verbs.push_back(std::make_unique<Completion>());
  verbs.push_back(std::make_unique<Complete>());
  verbs.push_back(std::make_unique<Manual>());
}

}  // namespace delayq::cli
