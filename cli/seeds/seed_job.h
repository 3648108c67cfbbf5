#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"
#include "json/reader.h"

namespace delayq::cli::seeds {

using Words = std::vector<std::string>;

/// A waiting job of another system, in our terms.
struct SeedJob {
  std::string topic;
  std::string id;
  std::string body;
  Moment due{};
  std::optional<Moment> pushed{};
  Millis delay{};         ///< that was asked for; zero: it is not known
  uint32_t attempts = 0;  ///< times it was tried there
  std::optional<uint32_t> max_attempts{};
  std::string backoff{};  ///< as in a setting; empty: not set, here and below
  std::string lease{};
  std::string callback{};
  std::string callback_method{};
  std::string callback_format{};
  std::string name{};

  std::vector<Words> removal{};  ///< the commands that remove it from Redis
};

/// The job as a line that `import` reads. A job that was due before `now` is ready.
std::string line_of(const SeedJob& job, Moment now);

/// The members of a JSON object that another program wrote. Names are compared without regard to case, as Go
/// does when it reads them.
class JsonJob {
 public:
  /// `text` must outlive it. Fails with kCorrupt when it is not an object.
  static Result<JsonJob> parse(std::string_view text);

  /// Null when there is no such member, or it is null.
  const json::Slice* find(std::string_view name) const;
  /// A text, or a number as it is written; empty when there is neither.
  std::string text(std::string_view name) const;
  /// nullopt when it is not a whole number that fits.
  std::optional<int64_t> number(std::string_view name) const;

 private:
  std::vector<json::Member> members_;
};

/// A job as go-delay-queue packs it: a MessagePack map with the keys "1" topic, "2" id, "3" delay and "4"
/// execution time in seconds, "5" body. Other keys are ignored.
struct PackedJob {
  std::string topic;
  std::string id;
  std::optional<double> delay{};
  std::optional<double> exec_time{};
  std::string body{};
};

/// kCorrupt, with what is wrong, for bytes that are no such map.
Result<PackedJob> unpack_job(std::string_view bytes);

}  // namespace delayq::cli::seeds
