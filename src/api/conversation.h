#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include "api/access.h"
#include "core/served.h"
#include "net/protocol.h"
#include "queue/queue.h"

namespace delayq::api {

/// The position of a reply in the order of its connection.
using ReplyPlace = uint64_t;

/// Sends replies in the order of their commands, whatever the order in which they are known. A place is
/// reserved when a command is accepted. The reply for the first place is written to the output; the others
/// wait for those before them.
class Replies {
 public:
  /// `most_bytes`: how large the reply may become; counted in bytes() until the reply is known.
  ReplyPlace reserve(size_t most_bytes = 0) {
    waiting_.emplace_back().promised = most_bytes;
    promised_ += most_bytes;
    return first_ + waiting_.size() - 1;
  }
  /// The reply at `place` may become this large. REQUIRES: the place is reserved and not yet filled.
  void promise(ReplyPlace place, size_t most_bytes) {
    size_t& promised = waiting_[place - first_].promised;
    promised_ += most_bytes;
    promised_ -= std::exchange(promised, most_bytes);
  }

  /// `fill(std::string&)` appends the reply's bytes. REQUIRES: the place is reserved and not yet filled.
  template <class Fill>
  void fill(ReplyPlace place, Fill&& fill) {
    extend(place, std::forward<Fill>(fill));
    promise(place, 0);
    waiting_[place - first_].is_filled = true;
    while (!waiting_.empty() && waiting_.front().is_filled) {
      waiting_.pop_front();
      ++first_;
      is_first_begun_ = false;
      if (!waiting_.empty()) release_first();
    }
  }
  /// The same with the first part of a reply: more of it follows.
  template <class Fill>
  void extend(ReplyPlace place, Fill&& fill) {
    if (place == first_) {
      is_first_begun_ = true;
      return fill(output_);
    }
    std::string& later = waiting_[place - first_].reply;
    const size_t before = later.size();
    fill(later);
    waiting_bytes_ += later.size() - before;
  }

  /// Whether the output ends amid a reply: nothing else may be written there.
  bool is_amid_reply() const { return is_first_begun_; }

  /// The place that reserve() returns next.
  ReplyPlace next_place() const { return first_ + waiting_.size(); }
  /// Places that are not filled yet, or wait for one before them.
  size_t waiting() const { return waiting_.size(); }
  /// Bytes of replies: in the output, waiting for others, and reserved.
  size_t bytes() const { return output_.size() + waiting_bytes_ + promised_; }
  /// The memory of all replies, counted one by one.
  size_t footprint() const {
    size_t bytes = output_.capacity() + waiting_.size() * sizeof(Waiting);
    for (const Waiting& each : waiting_) bytes += each.reply.capacity();
    return bytes;
  }
  std::string& output() { return output_; }
  const std::string& output() const { return output_; }

 private:
  struct Waiting {
    std::string reply;  ///< as far as it is known; of the first one, in the output already
    size_t promised = 0;
    bool is_filled = false;
  };

  /// Moves what is known of the first reply to the output.
  void release_first() {
    std::string& reply = waiting_.front().reply;
    is_first_begun_ = !reply.empty();
    waiting_bytes_ -= reply.size();
    output_ += reply;
    std::string().swap(reply);
  }

  std::deque<Waiting> waiting_;
  ReplyPlace first_ = 0;
  std::string output_;
  size_t waiting_bytes_ = 0;
  size_t promised_ = 0;
  bool is_first_begun_ = false;  ///< a part of the first reply is in the output
};

class Conversation;

/// The requests of an API, and those that were refused, since the server started.
struct Traffic {
  uint64_t requests = 0;
  std::array<uint64_t, kErrorTable.size()> refusals{};  ///< by ErrorCode

  void refuse(ErrorCode code) { ++refusals[static_cast<size_t>(code)]; }
};

/// What a server tells its clients about itself.
struct ServerFacts {
  std::string engine{};      ///< its name: "journal"
  std::string durability{};  ///< "commit" or "interval"; empty: the engine is not the journal
  Millis sync_interval{};    ///< with "interval": at most so much is lost when the power fails
  std::string resp{};        ///< where clients of these protocols connect
  std::string http{};
  uint64_t max_connections = 0;
  uint64_t max_jobs = QueueConfig::kUnbounded;
  uint64_t max_memory_bytes = QueueConfig::kUnbounded;  ///< of the engine
  uint64_t disk_reserve_bytes = 0;                      ///< pushes are refused when less is free
};

/// What the APIs of a server have in common, besides the queue.
struct Front {
  Access access;
  ServerFacts facts{};
  PerProtocol<Traffic> traffic;
  /// Called with every request when it is answered. Empty: requests are not logged, and nothing is kept for
  /// it.
  std::function<void(const Served&)> served;
  /// Whether RESP commands are logged, too.
  bool tells_commands = false;
  /// Called with requests that were refused because of their caller: no token, one without the permission, or
  /// one that is used too much.
  std::function<void(const Served&)> turned_away;
  /// A clock that only goes forward, to measure how long requests take.
  std::function<std::chrono::nanoseconds()> stopwatch = [] { return std::chrono::nanoseconds{}; };
  /// Conversations with a request that lasts long after it was admitted: a pop that waits, a stream of
  /// events.
  absl::flat_hash_set<Conversation*> lingering{};

  /// Replaces the tokens. A request that lingers ends when its caller may no longer make it.
  void set_tokens(std::vector<Token> tokens);
};

/// The kinds of answers, by size.
enum class AnswerKind : uint8_t {
  kShort,  ///< a few fields
  kNames,  ///< a page without bodies
  kJob,    ///< a job with its body
  kJobs,   ///< a page of these
  kLines,  ///< the same as lines of JSON, in any protocol
};

/// The most bytes that one byte of a body becomes in JSON: \u0001.
inline constexpr size_t kBytesPerByteInJson = 6;

/// A consumer that waits for a job.
struct WaitingPop {
  std::string_view client;  ///< its address
  ProtocolKind protocol = ProtocolKind::kHttp;
  std::string_view token;  ///< the name of its token; empty without one
  std::span<const std::string> topics;
  Moment since{};
  Moment until{};  ///< when it gets an empty answer
};

/// The pops that wait now, those that have waited longest first. Valid until the queue is called.
struct WaitingPops {
  std::vector<WaitingPop> first{};
  size_t total = 0;
};
/// At most `most` of them.
WaitingPops waiting_pops(const Front& front, size_t most);

/// One connection, in any protocol: requests take effect in their order, replies are sent in the same order,
/// and pops may wait. A pop that waits and a verb of several steps (queue/verbs.h) hold up later requests
/// of their connection.
class Conversation : public net::Protocol, public std::enable_shared_from_this<Conversation> {
 public:
  ~Conversation() override { sequence_->abandon(); }

  bool wants_input() const override;
  bool will_want_input() const override { return !is_over_ && !holds_up_; }
  bool is_known() const override;
  size_t held() const override { return replies_.bytes(); }
  size_t footprint() const override { return replies_.footprint(); }
  bool is_over() const override { return is_over_ && replies_.waiting() == 0; }
  std::string& output() override { return replies_.output(); }
  bool end_input() override;
  void hang_up() override;
  /// Ends requests that were admitted before, and that the caller may no longer make.
  virtual void check_again();
  virtual ProtocolKind protocol() const = 0;
  /// The pop that waits now, if there is one. Valid until the queue is called.
  std::optional<WaitingPop> waiting_pop() const;

 protected:
  using ReplyPlace = api::ReplyPlace;

  /// Above `most_unanswered` requests, or when their answers may be larger than the connection may hold, the
  /// client is not read until the queue has answered some and the client has read them.
  Conversation(Queue& queue, const std::function<Moment()>& clock, Front& front, net::Connection& connection,
               size_t most_unanswered);

  /// How large an answer of this kind may become.
  size_t most_bytes(AnswerKind kind) const;

  /// Asks the queue for jobs, for the reply at `place`; `answer` gets the result. Refused when the caller has
  /// too many pops waiting.
  Status ask_for_jobs(Moment now, const PopRequest& request, ReplyPlace place, Reply<PopAnswer> answer);

  /// To be held while requests are read and their verbs are called.
  [[nodiscard]] Queue::InOrder in_order() { return queue_.in_order(sequence_); }
  /// A pop will not be answered, because the client has disconnected.
  virtual void on_pop_dropped(ReplyPlace) {}

  /// The log entry of a request for `verb`, with its caller.
  Served about(std::string_view protocol, std::string_view verb) const;
  /// Reports a refused request, if it was refused because of its caller.
  void tell_if_turned_away(Served served, const Error& error) const;

  Queue& queue_;
  const std::function<Moment()>& clock_;
  Front& front_;
  net::Connection* connection_;  ///< null when the client has disconnected
  Replies replies_;
  Caller caller_;
  bool is_over_ = false;
  size_t bytes_per_byte_ = 1;  ///< of a body become at most this many in an answer

 private:
  struct Pop {
    WaiterId waiter = 0;
    Access::WaiterPlace place;
    std::vector<std::string> topics{};           ///< of one that waits
    Moment since{};                              ///< the same
    Moment until{};                              ///< the same
    std::shared_ptr<Reply<PopAnswer>> answer{};  ///< of one that waits
  };
  void end_pop(ReplyPlace place);

  size_t most_unanswered_;
  std::shared_ptr<Sequence> sequence_;
  absl::flat_hash_map<ReplyPlace, Pop> pops_;  ///< that are not answered yet
  std::optional<ReplyPlace> holds_up_;         ///< the one among them that waits
};

}  // namespace delayq::api
