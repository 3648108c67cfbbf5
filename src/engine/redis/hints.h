#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"

namespace delayq::redis {

/// Which shards may have ready jobs of a topic, so that a take need not ask all of them. "May" is the rule: a
/// shard is left out only when it was asked, had no more, and nobody has said since that it got some.
class Hints {
 public:
  explicit Hints(uint32_t shards) : shards_(shards) {}

  bool may_have(uint32_t shard, std::string_view topic, Outlet outlet) const;
  /// A job of that topic has become ready, or is about to.
  void note_ready(uint32_t shard, std::string_view topic, Outlet outlet);
  /// A number that is another one after that was noted; for note_empty().
  uint64_t heard(uint32_t shard, std::string_view topic, Outlet outlet) const;
  /// The shard had no more. Counts only when nothing was noted since heard() answered that.
  void note_empty(uint32_t shard, std::string_view topic, Outlet outlet, uint64_t heard);
  /// News may have been missed.
  void forget() {
    topics_.clear();
    forgotten_ = ++noted_;
  }

 private:
  struct Line {
    uint64_t heard = 0;
    bool is_empty = false;
  };
  using Lines = std::vector<Line>;  ///< by shard and outlet

  static constexpr size_t kMostTopics = 10'000;  ///< more are forgotten all together

  size_t place(uint32_t shard, Outlet outlet) const {
    return shard * kOutletCount + static_cast<size_t>(outlet);
  }

  uint32_t shards_;
  uint64_t noted_ = 0;      ///< how many times anything was
  uint64_t forgotten_ = 0;  ///< the last time that a note was not kept at its topic
  std::map<std::string, Lines, std::less<>> topics_;
};

}  // namespace delayq::redis
