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
    kSleeping,  ///< until a moment
    kHeld,      ///< until its host has a place
  };

  std::string topic;
  Outlet outlet = Outlet::kTopic;
  State state = State::kRunnable;
  bool told_again = false;  ///< while it was being asked
  uint32_t batch = 0;       ///< how many to ask for at most
  /// For jobs with callbacks of their own, whose hosts are known only when they have been taken: how long to
  /// rest when not all of them could be called.
  Millis rest{};

  Moment wakes_at{};
  std::string host;  ///< for which it is held
  uint64_t serial = 0;
};

/// Which sources are asked next: all take turns, so that a busy topic does not keep the others waiting. Only
/// those that may have something are here.
class Sources {
 public:
  /// The source, made when it is new; then it is runnable.
  Source& tell(std::string_view topic, Outlet outlet);
  /// Null when none is in line; else it is being asked from now on.
  Source* next();

  // ---- what comes after being asked (or, for the first, after sleeping or being held)
  void run(Source& source);
  void rest(Source& source, Moment until);
  void hold(Source& source, std::string host);
  /// Nothing more to deliver: gone until it is told again.
  void drop(Source& source);

  /// Those whose time has come are runnable.
  void wake_sleepers(Moment now);
  /// When the next will be; kNever when none sleeps.
  Moment next_wake() const { return sleeping_.empty() ? kNever : sleeping_.begin()->first.first; }
  /// As many of those that wait for the host are runnable; when none does, the first of those that rest.
  void host_has_room(const std::string& host, uint32_t places);
  /// All that wait for the host are runnable: there is no use in waiting for a place.
  void host_is_closed(const std::string& host);

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
