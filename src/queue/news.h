#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <absl/functional/function_ref.h>

#include "core/job_state.h"
#include "core/result.h"
#include "core/time.h"
#include "core/token.h"
#include "engine/engine.h"

namespace delayq {

/// What happened to a job.
enum class NewsKind : uint8_t {
  kPushed,      ///< stored, or stored in place of another one with its id
  kDue,         ///< a delayed job became ready
  kHandedOver,  ///< given to a consumer, or taken for its delivery
  kDone,
  kFailed,  ///< an attempt failed, and the job will be tried again
  kDead,
  kCancelled,  ///< removed by its producer
};
inline constexpr size_t kNewsKinds = 7;
inline constexpr std::array<std::string_view, kNewsKinds> kNewsNames{"pushed", "due",  "handed_over", "done",
                                                                     "failed", "dead", "cancelled"};
constexpr std::string_view name_of(NewsKind kind) { return kNewsNames[static_cast<size_t>(kind)]; }

/// One piece of news. The views of an item that is read are valid until the queue is called.
struct NewsItem {
  NewsKind kind = NewsKind::kPushed;
  Moment at{};
  std::string_view topic{};
  std::string_view id{};            ///< empty: about `count` jobs of the group
  std::string_view group{};         ///< empty: none
  std::optional<JobState> state{};  ///< of the job from now on; none: it is not there any more
  uint32_t attempt = 0;             ///< of those that are about an attempt; 0: not known
  std::optional<Moment> due{};      ///< pushed: its due time; failed: when it is tried again
  std::string_view reason{};        ///< failed and dead: the first kNewsReasonBytes of the error
  uint64_t count = 1;
};
inline constexpr size_t kNewsReasonBytes = 200;

/// Which news a listener gets. What is empty is not restricted.
struct NewsFilter {
  std::vector<std::string> patterns{};  ///< topics that the listener may see; empty: all
  std::string topic{};
  std::string group{};
  uint32_t kinds = 0;   ///< bits by NewsKind; 0: all
  uint32_t states = 0;  ///< bits by JobState; 0: all. News without a state pass only if it is 0

  bool passes(const NewsItem& item) const;
  bool is_unrestricted() const;
  bool operator==(const NewsFilter&) const = default;
};

/// Parses "done,dead" into NewsFilter::kinds; "all" is 0.
Result<uint32_t> parse_news_kinds(std::string_view text);
/// The same for NewsFilter::states.
Result<uint32_t> parse_news_states(std::string_view text);

class News;

/// One listener. It must be destroyed before the queue.
class NewsListener {
 public:
  ~NewsListener();
  NewsListener(const NewsListener&) = delete;
  NewsListener& operator=(const NewsListener&) = delete;

  struct Read {
    /// News were lost, because the listener was too slow, or was away for too long.
    bool has_missed = false;
    uint64_t missed = 0;  ///< at most so many; 0: not known
  };
  /// Calls `show` with the news since the last call, up to a bound. `rendered` is a place for the text of the
  /// item, kept for the other listeners: it is empty at first.
  using Show = absl::FunctionRef<void(const NewsItem& item, std::string& rendered)>;
  /// `tell` is called first when something was missed.
  Read read(absl::FunctionRef<void(const Read&)> tell, Show show);
  /// Where the news continue that were not read yet. A listener with the same filter that is given this goes
  /// on there.
  std::string cursor() const;
  /// Replaces the topics that it may see.
  void set_patterns(std::vector<std::string> patterns);

 private:
  friend class News;
  NewsListener(News& news, NewsFilter filter, std::weak_ptr<const char> alive)
      : news_(news), filter_(std::move(filter)), alive_(std::move(alive)) {}

  News& news_;
  NewsFilter filter_;
  std::weak_ptr<const char> alive_;  ///< of the queue
  uint64_t next_ = 0;                ///< the number of the next item to read
  uint64_t left_out_ = 0;            ///< of what was left out for its filter, how much it was told
  bool has_gap_ = false;             ///< what came before `next_` is lost, in an unknown number
};

/// News of single jobs, in a bounded ring. Nothing is kept, and nothing is asked of the engine, unless
/// somebody listens: see is_on(). A listener that leaves may come back for a while and go on where it was.
///
/// A flood of one kind of news is kept in part and counted: a listener could not read all of it, its cost
/// stays small, and the deaths amid a million pushes are still told.
///
/// Servers that share their jobs tell each other: a server with listeners says so every few seconds, and each
/// that has heard it sends what happens through it. Which jobs became due is published by the engine.
class News {
 public:
  /// How many items are kept, and the memory of their texts.
  static constexpr size_t kItems = 32'768;
  static constexpr uint64_t kBytes = uint64_t{16} << 20;
  /// One read() shows at most so many. A listener with more than half of the ring before it is too slow:
  /// it goes on with the latest few.
  static constexpr size_t kPerRead = 1'000;
  static constexpr size_t kLatest = 200;
  /// How many of one kind are kept for a filter: so many at once, and so many in each millisecond after that.
  static constexpr uint32_t kBurst = 8'192;
  static constexpr uint32_t kKeptPerMs = 5;
  static constexpr Millis kRefillEvery{20};
  /// How long the news of a filter are kept after its last listener has left. Less when there are too many.
  static constexpr Millis kLinger = std::chrono::seconds{60};
  static constexpr size_t kMostFilters = 200;
  /// How often a server with listeners tells the others, and how long they believe it.
  static constexpr Millis kTellEvery = std::chrono::seconds{5};
  static constexpr Millis kBelieve = std::chrono::seconds{15};
  /// How often news are sent to other servers, and about how much at once.
  static constexpr Millis kSendEvery{50};
  static constexpr size_t kMostOutgoing = 64 * 1024;

  News(Engine& engine, uint64_t seed) : engine_(engine), epoch_(seed) {}

  /// Whether somebody listens, here or at another server. The only thing that is asked when nobody does.
  bool is_on() const { return is_on_; }
  /// REQUIRES: is_on(). The texts are copied. An item that no listener wants is dropped.
  void note(const NewsItem& item);
  /// News that cannot be told one by one.
  void note_left_out(uint64_t count);

  /// kInvalid for a text that is no cursor; kOverloaded when there are too many filters.
  Result<std::shared_ptr<NewsListener>> listen(Moment now, NewsFilter filter, std::string_view cursor,
                                               std::weak_ptr<const char> alive);

  // ---- called by the queue
  void on_due(Moment now, const std::vector<DueJob>& jobs, uint64_t left_out);
  void on_told(Moment now, std::string_view message);
  /// Forgets filters whose listeners are gone, and sends news to other servers. Returns when to call it next.
  Moment tick(Moment now);
  /// The memory of all items, counted one by one, and of those that are sent to other servers.
  size_t footprint() const;

 private:
  friend class NewsListener;

  /// An item with its texts.
  struct Entry {
    Moment at{};
    std::optional<Moment> due{};
    uint64_t count = 1;
    std::string text{};  ///< topic, id, group and reason, one behind the other: fewer places in memory
    std::string rendered{};
    uint32_t topic = 0, id = 0, group = 0;  ///< their sizes
    uint32_t attempt = 0;
    std::optional<JobState> state{};
    NewsKind kind = NewsKind::kPushed;
    bool is_gap = false;  ///< `count` news that nobody can be told

    void set(const NewsItem& item);
    NewsItem view() const;
    size_t bytes() const { return text.capacity() + rendered.capacity(); }
  };
  struct Interest {
    NewsFilter filter;
    uint64_t since = 0;  ///< everything from this number on that passes is in the ring, or was
    uint32_t listeners = 0;
    Moment forget_at{};                       ///< without listeners
    std::array<uint32_t, kNewsKinds> room{};  ///< how many of each kind may be kept now
    Moment refilled_at{};
    uint64_t left_out = 0;  ///< what passes, but was not kept for want of room
    bool takes_all = false;

    Interest(NewsFilter wanted, uint64_t from);
    void refill(Moment now);
  };

  void keep(Moment now, const NewsItem& item);
  void keep_gap(uint64_t count);
  Entry& add();
  void leave(const NewsFilter& filter);
  Interest* find(const NewsFilter& filter);
  Interest& join(NewsFilter filter);
  /// Forgets the filter without listeners that would be forgotten first. False: all have listeners.
  bool make_room();
  void update(Moment now);
  Entry& entry(uint64_t number) { return ring_[number % kItems]; }
  /// The number of the next item, and of the oldest that is there.
  uint64_t next() const { return next_; }
  uint64_t first() const { return first_; }
  void send_outgoing();

  Engine& engine_;
  uint64_t epoch_;
  bool is_on_ = false;
  Moment now_{};
  std::vector<Interest> interests_;
  std::vector<Entry> ring_;  ///< empty while nobody listens
  uint64_t next_ = 0;
  uint64_t first_ = 0;
  uint64_t bytes_ = 0;
  Moment told_at_ = Moment::min();
  Moment sent_at_ = Moment::min();
  Moment others_until_ = Moment::min();  ///< until when others are believed to listen
  std::string outgoing_;                 ///< news for other servers
  uint64_t outgoing_count_ = 0;
  uint64_t outgoing_left_out_ = 0;
};

}  // namespace delayq
