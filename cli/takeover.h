#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/connection.h"
#include "cli/importing.h"
#include "cli/seeds/delay_topics.h"
#include "cli/seeds/redis_reader.h"
#include "cli/seeds/seed_job.h"
#include "cli/verb.h"

namespace delayq::cli {

/// A Redis server that jobs are read from.
struct RedisPlace {
  seeds::RedisReader reader;
  std::string name;        ///< "host:port/database", for people: without the password
  bool is_member = false;  ///< of a Cluster, which has other keys elsewhere
};

/// Connects to redis://[[user]:password@]host[:port][/database], or rediss:// for TLS. kInvalid for another
/// URL, kUnauthorized when Redis refuses the password.
Result<RedisPlace> open_redis(const std::string& url);

/// Counts the jobs that were found in another system's Redis, and their results.
class TakeoverReport {
 public:
  void found(const seeds::SeedJob& job, Moment now);
  void unreadable(const std::string& where, const std::string& why);
  void over() { ++over_; }
  void gone() { ++gone_; }
  /// The server's answer for a job.
  void answered(const std::string& where, const resp::Value& answer);
  void removed(uint64_t jobs) { removed_ += jobs; }
  /// The job was not removed: the job with its id here is another one.
  void left(const std::string& where);

  uint64_t jobs() const { return jobs_; }
  /// Including those that cannot be read.
  uint64_t found() const { return jobs_ + unreadable_; }
  /// Jobs that wait there and are not here.
  uint64_t missed() const { return unreadable_ + counts_.failed(); }
  const ImportCounts& counts() const { return counts_; }

  struct Heading {
    std::string system;
    std::string from;
    std::string to;
    bool is_dry_run = true;
    bool removes = false;
    std::string kafka{};  ///< brokers and group; empty: no records were read
    uint64_t records = 0;
  };
  std::string text(const Heading& heading) const;
  std::string json(const Heading& heading) const;

 private:
  struct Topic {
    uint64_t delayed = 0;
    uint64_t due = 0;
  };
  struct Problem {
    uint64_t count = 0;
    std::string example;
  };

  std::string problems_text() const;

  std::map<std::string, Topic> topics_;
  std::map<std::string, Problem> problems_;  ///< by their text
  std::vector<std::string> first_;           ///< lines, to look at
  uint64_t jobs_ = 0;
  uint64_t due_ = 0;
  uint64_t unreadable_ = 0;
  uint64_t over_ = 0;
  uint64_t gone_ = 0;
  uint64_t removed_ = 0;
  uint64_t left_ = 0;
  ImportCounts counts_;
};

namespace seeds {
class RedisReader;
}

/// `import --from SYSTEM redis://...`: reads the jobs that wait in another delay queue's Redis and stores
/// them here. Without --yes it only says what it would do. Nothing there is changed without --remove.
class TakeoverOptions {
 public:
  /// --from, --yes, --dry-run, --remove, --buckets, --bucket-name, --kafka, --kafka-group, --kafka-file.
  void add_to(CLI::App& app);
  bool is_wanted() const { return !from_.empty(); }
  /// Fails if options that need --from were given without it.
  Status check_unwanted() const;
  /// `sources` are the URLs, of which there must be exactly one; `data` as for import.
  Status run(const Session& session, const std::vector<std::string>& sources,
             const std::optional<std::string>& data) const;

 private:
  std::string from_;
  bool yes_ = false;
  bool dry_run_ = false;
  bool remove_ = false;
  Status check_empty(const seeds::RedisReader& redis) const;
  /// Where the records are; fails if that is said wrongly.
  Result<std::optional<seeds::DelayTopics>> kafka_source() const;
  /// A go-delay-queue that still runs would hand over the same jobs: refused, and told in a dry run.
  Status check_stopped(const Session& session, const seeds::RedisReader& redis) const;

  uint32_t buckets_ = 0;  ///< 0: all that exist
  std::string bucket_name_;
  std::string kafka_;  ///< brokers
  std::string kafka_group_;
  std::string kafka_file_;
};

}  // namespace delayq::cli
