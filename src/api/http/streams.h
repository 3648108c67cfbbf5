#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>

#include "api/access.h"
#include "core/time.h"
#include "json/reader.h"
#include "json/splitter.h"
#include "queue/queue.h"

namespace delayq::http {

/// The jobs of one request, which may be larger than memory: a JSON array, or one object a line. They are
/// pushed while they arrive, in steps. The queue stores a step as one commit. A request that fits into one
/// step is one commit, and when it is malformed nothing of it is stored.
///
/// The answer is bounded too: a request that fits into one step gets a result for each job; a longer one gets
/// the counts and the first failures.
class PushStream : public std::enable_shared_from_this<PushStream> {
 public:
  struct Options {
    json::Splitter::Form form = json::Splitter::Form::kArray;
    size_t job_bytes = size_t{4} << 20;    ///< of one job's text
    size_t step_bytes = size_t{16} << 20;  ///< of the jobs' texts in one step
    size_t step_jobs = Limits::kBatchJobs;
  };
  struct Outcome {
    uint64_t pushed = 0;
    uint64_t failed = 0;
    std::string results;      ///< a JSON array
    bool is_complete = true;  ///< of results: there is one for each job
  };
  /// Called once, from the queue's poll() or from within take() and finish().
  using Done = std::function<void(Result<Outcome>)>;

  PushStream(Queue& queue, const api::Access& access, api::Caller caller, Options options, Done done);

  void take(Moment now, std::string_view piece);
  void finish(Moment now);
  /// The rest will not arrive: jobs that are not pushed yet are dropped, and `error` is the answer.
  void give_up(Error error);
  /// Enough steps are running: do not call take() for now.
  bool is_busy() const { return steps_running_ >= kMostSteps; }
  /// What it holds of its jobs and their results.
  size_t bytes() const {
    return texts_.size() + items_.size() * sizeof(Item) + all_.size() + failures_.size();
  }
  void on_progress(std::function<void()> tell) { tell_ = std::move(tell); }

 private:
  static constexpr int kMostSteps = 2;

  struct Item {
    size_t begin = 0;  ///< of its text in texts_
    size_t size = 0;
    json::Type type = json::Type::kNull;
  };
  struct Step;

  void add(std::string_view text);
  void push_step(Moment now);
  void answered(const Step& step, const Result<PushReport>& report);
  void note_result(uint64_t index, std::string_view topic, const Result<PushReceipt>& result);
  void fail(std::string detail);
  void end_if_done();

  Queue& queue_;
  const api::Access& access_;
  api::Caller caller_;
  Options options_;
  Done done_;
  std::function<void()> tell_;
  json::Splitter splitter_;
  std::string texts_;  ///< of the jobs of the step that is being filled
  std::vector<Item> items_;
  uint64_t first_index_ = 0;  ///< of the first of them
  int steps_running_ = 0;
  bool is_first_step_ = true;
  bool is_finished_ = false;
  std::optional<Error> error_;
  Outcome outcome_;
  std::string all_;       ///< results of the first step
  std::string failures_;  ///< of all steps
  uint64_t failures_shown_ = 0;
};

class Conversation;

/// One response to GET /v1/events: server-sent events, until the connection ends.
class Stream {
 public:
  static constexpr Millis kShortestInterval{100};
  static constexpr Millis kLongestInterval{60'000};
  /// Something is sent at least this often: proxies close connections on which nothing happens.
  static constexpr Millis kSignOfLife{15'000};

  virtual ~Stream() = default;
  /// Sends what has changed, when it is time for that. Returns when to call it next, or kNever: it has ended.
  virtual Moment watch(Moment now) = 0;
  /// The tokens were replaced. False: the caller may not read this any more.
  virtual bool may_go_on(const api::Access& access, const api::Caller& caller) = 0;
};

/// Figures: each topic, and the totals, are sent again only when they differ from what was sent last.
class EventStream final : public Stream, public std::enable_shared_from_this<EventStream> {
 public:
  struct Options {
    Millis interval{1'000};
    std::string topic;  ///< empty: all
  };
  EventStream(Conversation& conversation, Queue& queue, Moment now, Options options);

  Moment watch(Moment now) override;
  bool may_go_on(const api::Access& access, const api::Caller& caller) override;

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

/// News of single jobs (queue/news.h). A client that reads too slowly is told how many it has missed.
class NewsStream final : public Stream {
 public:
  NewsStream(Conversation& conversation, std::shared_ptr<NewsListener> listener, Moment now, Millis interval);

  Moment watch(Moment now) override;
  bool may_go_on(const api::Access& access, const api::Caller& caller) override;

 private:
  std::weak_ptr<Conversation> conversation_;
  std::shared_ptr<NewsListener> listener_;
  Millis interval_;
  Moment next_;
  Moment sign_of_life_;
};

/// All event streams of a server.
class Events {
 public:
  static constexpr size_t kMostStreams = 100;

  bool is_full() const { return streams_.size() >= kMostStreams; }
  size_t size() const { return streams_.size(); }
  void add(const std::shared_ptr<Stream>& stream) { streams_.push_back(stream); }
  /// Returns when to call it again; kNever when there are no streams.
  Moment tick(Moment now);

 private:
  std::vector<std::weak_ptr<Stream>> streams_;
};

}  // namespace delayq::http
