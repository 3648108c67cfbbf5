#include "cli/job_input.h"

#include <fstream>
#include <istream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "core/limits.h"

namespace delayq::cli {

void JobFlags::add_to(CLI::App& app) {
  app.add_option("--priority", priority_, "A lower number is handed out first; default 1024");
  app.add_option("--attempts", attempts_, "Tries before it is dead; 0: no limit");
  app.add_option("--backoff", backoff_, "30s, or 10s,1m,10m, or exponential:1s:2:1h:0.1");
  app.add_option("--lease", lease_, "How long a consumer may hold it");
  app.add_option("--group", group_, "The group, to cancel its jobs together");
  app.add_option("--callback", callback_, "Call this URL when the job is due; it is then never popped");
  app.add_option("--callback-method", method_, "POST, PUT, PATCH or DELETE; default the topic's");
  app.add_option("--callback-format", format_, "webhook, cloudevents or callback-api; default the topic's");
}

void JobFlags::append_to(Words& command) const {
  append_option(command, "PRI", priority_);
  append_option(command, "ATTEMPTS", attempts_);
  append_option(command, "BACKOFF", backoff_);
  append_option(command, "LEASE", lease_);
  append_option(command, "GROUP", group_);
  append_option(command, "CALLBACK", callback_);
  append_option(command, "METHOD", method_);
  append_option(command, "FORMAT", format_);
}

Result<std::string> read_body(std::istream& in) {
  std::string body;
  std::string chunk(size_t{256} << 10, '\0');
  while (body.size() <= Limits::kMaxBodyBytes && in) {
    in.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    body.append(chunk, 0, static_cast<size_t>(in.gcount()));
  }
  if (in.bad()) return invalid("body: could not be read to its end");
  if (Status status = check_body(body.size(), Limits::kMaxBodyBytes); !status) return status.error();
  return body;
}

Result<std::string> read_body_file(const std::string& name) {
  std::ifstream in(name, std::ios::binary);
  if (!in || in.peek() == std::ifstream::traits_type::eof()) {
    if (!in.eof()) return invalid(fmt::format("--file: {} cannot be read", name));
    return std::string();
  }
  Result<std::string> body = read_body(in);
  if (!body) return Error{body.error().code, {}, fmt::format("{}: {}", name, body.error().detail)};
  return body;
}

Result<std::string> given_body(const Session& session, const std::string& given, std::string_view advice) {
  if (given != "-") return given;
  if (session.world.in_is_terminal) return invalid(fmt::format("body: is missing: {}", advice));
  return read_body(session.world.in);
}

}  // namespace delayq::cli
