#pragma once

#include "cli/verb.h"

namespace delayq::cli {

/// The body of each line stands between `before` and `after` in its command.
struct LinePush {
  Words before, after;
  std::vector<std::string> files;  ///< none: standard input
};

/// One job for each line, many in one conversation, in bounded memory however long the input is. The line end
/// is not part of the body, and an empty line is no job. Shows how far it is on a terminal, and how many
/// there were at the end. Stops at the first line that is refused and names it.
Status push_lines(const Session& session, const LinePush& push);

}  // namespace delayq::cli
