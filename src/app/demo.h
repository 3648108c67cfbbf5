#pragma once

#include <iosfwd>
#include <string>

#include "core/result.h"

namespace delayq {

/// Shows a job's life: the whole queue over the journal engine in `directory`, on a virtual clock, so that
/// days pass in milliseconds. Writes a line for each thing that happens. Fails when the directory cannot be
/// used.
Status run_demo(const std::string& directory, std::ostream& out);

}  // namespace delayq
