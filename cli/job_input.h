#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "cli/verb.h"
#include "core/result.h"

namespace delayq::cli {

/// The options of a job that `push` and `schedule set` share. The values go to the server as they are
/// written.
class JobFlags {
 public:
  /// --priority, --attempts, --backoff, --lease, --group, --callback and its kin. CLI11 keeps the addresses
  /// of the members.
  void add_to(CLI::App& app);
  /// The same as the server's words.
  void append_to(Words& command) const;

 private:
  std::optional<std::string> priority_, attempts_, backoff_, lease_, group_, callback_, method_, format_;
};

/// Reads all of the input, but not much more than the largest body.
Result<std::string> read_body(std::istream& in);
/// The same from the file that the option --file names.
Result<std::string> read_body_file(const std::string& name);
/// The body that was given as an argument; "-" is standard input. `advice` says where else a body may be,
/// for a person at a terminal who gave none.
Result<std::string> given_body(const Session& session, const std::string& given, std::string_view advice);

}  // namespace delayq::cli
