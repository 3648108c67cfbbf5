#pragma once

#include <memory>
#include <vector>

#include "core/time.h"

namespace delayq::http {

/// Somebody who is told again and again what has changed.
class Watcher {
 public:
  virtual ~Watcher() = default;
  /// Tells what has changed when it is time for that. Answers when to call next, or kNever: it is gone.
  virtual Moment watch(Moment now) = 0;
};

/// Everybody who watches, and when the next of them is to be told.
class Events {
 public:
  static constexpr size_t kMostWatchers = 100;

  bool is_full() const { return watchers_.size() >= kMostWatchers; }
  size_t size() const { return watchers_.size(); }
  void add(const std::shared_ptr<Watcher>& watcher) { watchers_.push_back(watcher); }
  /// Answers when it wants to be called again; kNever when nobody watches.
  Moment tick(Moment now);

 private:
  std::vector<std::weak_ptr<Watcher>> watchers_;
};

}  // namespace delayq::http
