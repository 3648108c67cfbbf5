#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include "core/job.h"

namespace delayq::delivery {

/// An outlet of a topic that may have jobs to deliver.
struct Source {
  enum class State : uint8_t {
    kRunnable,  ///< in line to be asked
    kTaking,    ///< being asked
    kSleeping,  ///< until `wakes_at`
    kHeld,      ///< until its lane has room
  };

  std::string topic;
  Outlet outlet = Outlet::kTopic;
  State state = State::kRunnable;
  bool told_again = false;  ///< jobs were reported while it was being asked
  uint32_t batch = 0;       ///< how many to ask for at most; zero: it was not asked yet
  /// For jobs whose lanes are known only when they have been taken: how long the last rest was, after some of
  /// them found no room. Zero: all found room.
  Millis rest{};

  Moment wakes_at{};
  std::string lane;  ///< for which it is held
  uint64_t serial = 0;
};

/// The sources of one sink that may have jobs. All take turns, so that a busy topic does not keep the others
/// waiting.
class Sources {
 public:
  /// Returns the source; a new one is runnable.
  Source& tell(std::string_view topic, Outlet outlet);
  /// Returns the next source in line, which is being asked from now on; null when there is none.
  Source* next();

  // ---- what comes after being asked (or, for the first, after sleeping or being held)
  void run(Source& source);
  void rest(Source& source, Moment until);
  void hold(Source& source, std::string lane);
  /// Nothing more to deliver: forgets the source until tell() is called for it.
  void drop(Source& source);

  /// Makes the sources runnable whose rest is over.
  void wake_sleepers(Moment now);
  /// When the next one wakes; kNever when none sleeps.
  Moment next_wake() const { return sleeping_.empty() ? kNever : sleeping_.begin()->first.first; }
  /// Makes this many of the sources runnable that are held for the lane; if there are none, the first of
  /// those that rest because a lane had no room.
  void lane_has_room(const std::string& lane, uint32_t jobs);
  /// Makes all sources runnable that are held for the lane: there will be no room soon.
  void lane_is_closed(const std::string& lane);

  size_t size() const { return all_.size(); }

 private:
  using Key = std::pair<std::string, Outlet>;

  void leave_state(Source& source);

  absl::flat_hash_map<Key, std::unique_ptr<Source>> all_;
  std::deque<Source*> runnable_;
  absl::btree_map<std::pair<Moment, uint64_t>, Source*> sleeping_;
  absl::flat_hash_map<std::string, std::deque<Source*>> held_;
  uint64_t last_serial_ = 0;
};

}  // namespace delayq::delivery
