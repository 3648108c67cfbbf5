#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "core/time.h"
#include "queue/queue.h"

namespace delayq::http {

class Conversation;

/// One response to GET /v1/events: server-sent events about what has changed, until the connection ends. Each
/// topic, and the totals, are sent again only when they differ from what was sent last.
class EventStream : public std::enable_shared_from_this<EventStream> {
 public:
  static constexpr Millis kShortestInterval{100};
  static constexpr Millis kLongestInterval{60'000};
  /// Something is sent at least this often: proxies close connections on which nothing happens.
  static constexpr Millis kSignOfLife{15'000};

  struct Options {
    Millis interval{1'000};
    std::string topic;  ///< empty: all
  };
  EventStream(Conversation& conversation, Queue& queue, Moment now, Options options);

  /// Sends what has changed, when it is time for that. Returns when to call it next, or kNever: it has ended.
  Moment watch(Moment now);

 private:
  TopicSummaries only_watched(const TopicStats& stats) const;
  void send_changes(Moment now, const TotalStats* totals, const TopicSummaries* topics);
  void send_gone(std::string& out, const TopicSummaries& topics);

  std::weak_ptr<Conversation> conversation_;
  Queue& queue_;
  Options options_;
  Moment next_;
  Moment sign_of_life_;
  bool is_asking_ = false;
  absl::flat_hash_map<std::string, uint64_t> seen_;  ///< hashes of what was sent last, by topic
};

/// All event streams of a server.
class Events {
 public:
  static constexpr size_t kMostStreams = 100;

  bool is_full() const { return streams_.size() >= kMostStreams; }
  size_t size() const { return streams_.size(); }
  void add(const std::shared_ptr<EventStream>& stream) { streams_.push_back(stream); }
  /// Returns when to call it again; kNever when there are no streams.
  Moment tick(Moment now);

 private:
  std::vector<std::weak_ptr<EventStream>> streams_;
};

}  // namespace delayq::http
