#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/importing.h"
#include "cli/seeds/seed_job.h"

namespace delayq::cli {

/// What was found in another system's Redis, and what became of it.
class TakeoverReport {
 public:
  void found(const seeds::SeedJob& job, Moment now);
  void unreadable(const std::string& where, const std::string& why);
  void over() { ++over_; }
  void gone() { ++gone_; }
  /// What the server said to a job.
  void answered(const std::string& where, const resp::Value& answer);
  void removed(uint64_t jobs) { removed_ += jobs; }
  /// It was to be removed, but what has its id here is another job.
  void left(const std::string& where);

  uint64_t jobs() const { return jobs_; }
  /// Those that cannot be read among them.
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
  std::map<std::string, Problem> problems_;  ///< by what is wrong
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

}  // namespace delayq::cli
