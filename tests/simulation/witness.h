#pragma once

#include <cstdio>
#include <string>
#include <utility>

namespace delayq::simulation {

/// Who tells what happened (when the seed is replayed) and what went wrong first.
class Witness {
 public:
  explicit Witness(bool tracing) : tracing_(tracing) {}

  /// Whether somebody listens. Ask before composing a line.
  bool tracing() const { return tracing_; }

  void say(const std::string& line) {
    if (tracing_) std::puts(line.c_str());
  }

  /// Only the first failure counts; the others follow from it.
  void fail(std::string what) {
    if (!failure_.empty()) return;
    failure_ = std::move(what);
    say("FAILURE: " + failure_);
  }

  bool failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }

 private:
  bool tracing_;
  std::string failure_;
};

}  // namespace delayq::simulation
