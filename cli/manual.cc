#include "cli/manual.h"

#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "core/error.h"

namespace delayq::cli {

namespace {

constexpr std::string_view kServerGroup = "Server";

/// Text that stands for itself: no line of it is a request, and a hyphen is the one that can be typed.
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
  if (inner.empty()) {
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
      "a job, or the output could not be written.\n";
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
\fBDELAYQ_TOPIC\fR, \fBDELAYQ_ID\fR, \fBDELAYQ_ATTEMPT\fR, \fBDELAYQ_LEASE\fR and \fBDELAYQ_DUE_AT\fR.
The settings of the server are in variables, too: see the reference of the configuration.
.SH EXAMPLES
.nf
delayq push order 30m \(aq{"uid":1}\(aq \-\-id order:1
delayq cancel order order:1
delayq push mail 0 \-\-lines addresses.txt
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

}  // namespace delayq::cli
