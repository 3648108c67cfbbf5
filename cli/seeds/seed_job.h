#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"

namespace delayq::cli::seeds {

using Words = std::vector<std::string>;

/// A job that waits in another system, in our words.
struct SeedJob {
  std::string topic;
  std::string id;
  std::string body;
  Moment due{};
  std::optional<Moment> pushed{};
  Millis delay{};         ///< that was asked for; zero: it is not known
  uint32_t attempts = 0;  ///< times it was tried there
  std::optional<uint32_t> max_attempts{};
  std::string backoff{};  ///< as a setting writes it; empty: nothing is said, here and below
  std::string lease{};
  std::string callback{};
  std::string callback_method{};
  std::string callback_format{};
  std::string name{};

  std::vector<Words> removal{};  ///< the commands that take it out of there
};

/// The job as a line that `import` reads. What was due before `now` is ready.
std::string line_of(const SeedJob& job, Moment now);

}  // namespace delayq::cli::seeds
