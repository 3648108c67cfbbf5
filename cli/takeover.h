#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/verb.h"

namespace delayq::cli {

namespace seeds {
class RedisReader;
}

/// `import --from SYSTEM redis://...`: reads the jobs that wait in another delay queue's Redis and stores
/// them here. Without --yes it only says what it would do. Nothing there is changed without --remove.
class TakeoverOptions {
 public:
  /// --from, --yes, --dry-run, --remove, --buckets, --bucket-name.
  void add_to(CLI::App& app);
  bool is_wanted() const { return !from_.empty(); }
  /// An error when what is for it alone was said without it.
  Status check_unwanted() const;
  /// `sources` are the URLs, of which there has to be one; `data` as import has it.
  Status run(const Session& session, const std::vector<std::string>& sources,
             const std::optional<std::string>& data) const;

 private:
  std::string from_;
  bool yes_ = false;
  bool dry_run_ = false;
  bool remove_ = false;
  Status check_empty(const seeds::RedisReader& redis) const;

  uint32_t buckets_ = 0;  ///< 0: all that are there
  std::string bucket_name_;
};

}  // namespace delayq::cli
