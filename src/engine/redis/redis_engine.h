#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "engine/engine.h"
#include "engine/redis/arguments.h"
#include "engine/redis/cold_tier.h"
#include "engine/redis/driving.h"
#include "engine/redis/explain.h"
#include "engine/redis/joint_call.h"
#include "engine/redis/keys.h"
#include "engine/redis/lease.h"
#include "net/redis/client.h"

namespace delayq {

struct RedisEngineOptions {
  std::string prefix = "delayq";             ///< of all keys
  std::string prefix_name = "redis.prefix";  ///< the setting that chooses it, for messages
  redis::Shards shards{};                    ///< the same for all servers of a deployment, and never changed
  /// The name of this server. It must be unique among the servers that share the deployment.
  std::string server = "server";
  /// How long this server drives a shard without renewing: if it dies, another server takes over after this
  /// time. A little less than the 2 s that are documented.
  Millis hold{1'800};
  /// Read-only: drives nothing, does not listen to news and writes no layout. Only load_settings() and
  /// topics() may be called; they then write nothing.
  bool only_looks = false;
  /// Keeps the bodies of jobs that are due much later; null: all bodies are in Redis. The same for all
  /// servers of the deployment. It must outlive the engine, and only the engine may use it.
  redis::ColdStore* cold_store = nullptr;
};

/// Stores jobs in Redis, shared by any number of servers. Every transition is one script on
/// one shard (ADR 0012).
///
/// Order. Calls about a topic in one shard are executed in the order of their verbs, and so are calls about a
/// whole shard. So a verb sees the effect of all verbs before it, even if it uses several shards; the
/// exceptions are described at the verbs. poll() sends verbs that do the same in a topic in one call. If the
/// jobs that a verb names in a topic and shard have more than 4 MiB, the first are processed in this order
/// and the others by further calls; other verbs may run between these calls.
///
/// While Redis is not reachable, every verb replies kUnavailable.
class RedisEngine final : public Engine {
 public:
  /// The client must outlive the engine, and only the engine may poll it.
  RedisEngine(net::redis::Client& client, RedisEngineOptions options);
  /// Stops driving, so that another server can take over at once.
  ~RedisEngine() override;
  RedisEngine(const RedisEngine&) = delete;
  RedisEngine& operator=(const RedisEngine&) = delete;

  /// Describes what is wrong with the keys of the deployment (another program uses one, or one is damaged),
  /// with advice, as found by the last call that failed for this reason. Empty: nothing so far.
  std::string_view problem() const { return problem_; }
  /// How many jobs had lost their place in the keys of their topic and were put back (mend.lua).
  uint64_t mended() const { return mended_; }
  /// The same of schedules (mend_schedules.lua).
  uint64_t mended_schedules() const { return mended_schedules_; }
  /// Null: there is no cold store.
  const redis::ColdTier* cold_tier() const { return cold_.get(); }

  // ---- a job's life (life.cc)
  void push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) override;
  /// With several shards: asks those that may have ready jobs, one after the other, until there are enough.
  /// Verbs that are called meanwhile may run between two shards.
  void take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) override;
  void ack(Moment now, std::span<const AckRequest> leases, Reply<std::vector<AckOutcome>> reply) override;
  void nack(Moment now, std::span<const NackRequest> leases, Reply<std::vector<NackOutcome>> reply) override;
  void extend(Moment now, std::span<const ExtendRequest> leases,
              Reply<std::vector<ExtendAnswer>> reply) override;
  void cancel(Moment now, std::span<const JobRef> jobs, Reply<std::vector<CancelOutcome>> reply) override;
  void reschedule(Moment now, std::span<const RescheduleRequest> jobs,
                  Reply<std::vector<RescheduleOutcome>> reply) override;

  // ---- many at once (sweeps.cc). With several shards, the oldest jobs of each shard count as the oldest of
  // all. If one call cannot do everything, further calls follow, and other verbs may run between them.
  void restore(Moment now, std::span<const RestoreRequest> jobs,
               Reply<std::vector<PushAnswer>> reply) override;
  void cancel_group(Moment now, const GroupCancelRequest& request, Reply<GroupCancelAnswer> reply) override;
  void redrive(Moment now, std::string_view topic, std::span<const std::string_view> ids,
               Reply<uint64_t> reply) override;
  void redrive_oldest(Moment now, std::string_view topic, uint32_t max, Reply<uint64_t> reply) override;
  void purge(Moment now, std::string_view topic, JobState state, uint32_t max,
             Reply<uint64_t> reply) override;
  void trim(Moment now, const TrimRequest& request, Reply<TrimAnswer> reply) override;

  // ---- reading (look.cc)
  void get(Moment now, const JobRef& job, Reply<std::optional<FoundJob>> reply) override;
  void locate(Moment now, std::string_view id, Among among, Reply<std::vector<std::string>> reply) override;
  void list(Moment now, const ListRequest& request, Reply<JobPage> reply) override;
  void counts(Moment now, std::string_view topic, Reply<TopicCounts> reply) override;
  void topics(Moment now, std::string_view cursor, uint32_t limit, Reply<TopicPage> reply) override;
  void forecast(Moment now, const ForecastRequest& request, Reply<Forecast> reply) override;
  EngineUsage usage() const override;
  CommitFigures commits() const override;

  // ---- settings, flush, backup (sweeps.cc, look.cc)
  void store_settings(std::string_view topic, std::string_view settings, Reply<bool> reply) override;
  void load_settings(Reply<std::vector<TopicSettings>> reply) override;

  // ---- schedules (schedules.cc)
  void turn(Moment now, std::span<const TurnRequest> requests, Reply<std::vector<TurnAnswer>> reply) override;
  void get_schedule(Moment now, std::string_view name, Reply<std::optional<StoredSchedule>> reply) override;
  void list_schedules(Moment now, const ScheduleListRequest& request, Reply<SchedulePage> reply) override;
  void flush(Reply<bool> reply) override;
  void backup(std::string_view name, Reply<BackupReport> reply) override;

  // ---- running (redis_engine.cc)
  void held(Moment now, std::span<const LeaseRef> leases, bool with_bodies, Reply<HeldJobs> reply) override;
  /// The scripts that make jobs ready publish them.
  void watch_due(bool is_on) override;
  void tell_others(std::string_view message) override;
  bool has_parts() const override { return keys_.shards() > 1; }
  Moment tick(Moment now) override;
  bool poll(EngineListener& listener) override;
  void set_wakeup(std::function<void()> wakeup) override;

 private:
  friend class RedisEngineTest;
  using Answers = std::vector<absl::AnyInvocable<void()>>;

  /// Checks that the deployment has the layout that this server expects; otherwise every verb is refused.
  void check_layout();
  void layout_came(const Result<resp::Value>& answer);
  /// Runs a script after all calls before it. Replies are dropped once the engine is destroyed.
  void run(const net::redis::Script& script, std::span<const std::string_view> keys,
           const redis::Arguments& arguments, net::redis::Answer answer);
  /// The same, without sending the waiting joint calls first.
  void submit(const net::redis::Script& script, std::span<const std::string_view> keys,
              const redis::Arguments& arguments, net::redis::Answer answer);
  /// The arguments that every script about a topic gets first (see scripts/prelude.lua). Its
  /// own arguments follow.
  redis::Arguments arguments_for(Moment now, uint32_t shard, std::string_view topic) const;
  void open_cold_store();
  /// A call that is about to be sent gives a job this due time. If it is due much later, its body moves to
  /// the cold store.
  void expect_delayed(Moment now, uint32_t shard, Moment due) {
    if (cold_ != nullptr && redis::time_left(now, due) >= cold_->least()) far_shards_.insert(shard);
  }
  /// Reads the bodies of these jobs from the cold store into `storage`, and then calls `done`. Jobs and
  /// storage must live as long.
  struct ColdJob {
    Job* job;
    redis::ColdBody body;
  };
  struct Bodies;
  void fetch_bodies(const std::vector<ColdJob>& jobs, Arena& storage, absl::AnyInvocable<void(Status)> done);
  /// The reply of every such script begins with two values: when its shard must be visited next, if this
  /// changed, and which outlets got ready jobs. Records both. Returns false if the reply is malformed.
  bool note(uint32_t shard, std::string_view topic, const resp::Value& answer);
  /// A call that is about to be sent may give the topic ready jobs in that shard: later takes then ask the
  /// shard, even before the reply comes.
  void expect_ready(uint32_t shard, std::string_view topic) {
    hints_.note_ready(shard, topic, Outlet::kTopic);
    hints_.note_ready(shard, topic, Outlet::kCallback);
  }
  /// A script said when the shard must be visited next.
  void note_next(uint32_t shard, const resp::Value& next);
  /// The topic has new ready jobs in that shard: notifies the listener, and takes will ask the shard.
  void note_ready(uint32_t shard, std::string_view topic, Outlet outlet);
  /// The reply handler for the call of a bundle; `gather` combines it with the others. `read` adds the
  /// script's result to the verb's reply and returns false if it is malformed: bool(const resp::Value&, const
  /// std::string& topic, const redis::Bundle&, T& all).
  template <class T, class Read>
  net::redis::Answer expect(const net::redis::Script& script, redis::Bundle bundle, redis::Gather<T>& gather,
                            Read read) {
    std::string topic(bundle.topic);
    bundle.topic = {};
    return gather.expect([this, name = script.name, topic = std::move(topic), bundle = std::move(bundle),
                          read](resp::Value& value, T& all) -> Status {
      if (!note(bundle.shard, topic, value) || !read(value, topic, bundle, all)) return not_understood(name);
      return {};
    });
  }
  /// Sends the call of a bundle, not joined with others.
  template <class T, class Read>
  void send(const net::redis::Script& script, redis::Bundle bundle, const redis::Arguments& arguments,
            redis::Gather<T>& gather, Read read) {
    const redis::TopicKeys keys = keys_.topic(bundle.shard, bundle.topic);
    run(script, keys.all(), arguments, expect(script, std::move(bundle), gather, read));
  }
  /// Returns the arguments of the call for a verb's items, to which the caller adds theirs: a call that
  /// earlier verbs began, if it has the same terms and enough room, otherwise a new one. It is sent before
  /// any other call about the topic, and at the latest by poll().
  redis::Arguments& join(const redis::Terms& terms, uint32_t items, net::redis::Answer answer);
  void send_joint(redis::JointCall call);
  /// Sends the items that have no result yet, until all have one.
  void send_part(const std::shared_ptr<redis::JointCall>& call);
  void send_all_joint();
  /// Calls a script about leases for the leases of a batch that may be current. `add` adds the arguments of a
  /// lease after the lease itself, for a shard; `read` is as above. `numbers` returns the first arguments of
  /// the call, an array that must be equal for all leases in one call.
  template <class T, class Request, class Numbers, class Add, class Read>
  void send_leases(const net::redis::Script& script, Moment now, std::span<const Request> requests,
                   redis::Gather<T>& gather, Numbers numbers, Add add, Read read);
  /// The error for a reply that does not match the RETURNS of its script.
  static Error not_understood(std::string_view script);

  /// The shard's part of a number that applies to a whole topic: how many jobs may be reserved, or are kept.
  /// The parts add up to the number, unless it is smaller than the number of shards: each part is at least 1.
  uint32_t share_of(uint32_t count, uint32_t shard) const;

  struct Taking;
  void take_from_next(const std::shared_ptr<Taking>& taking);
  void go_on_taking(const std::shared_ptr<Taking>& taking, const Status& status);
  Status read_taken(uint32_t shard, Taking& taking, const resp::Value& answer, uint32_t asked,
                    uint64_t heard);
  void note_asked(std::string_view topic, Outlet outlet);
  /// A call got no reply: the topic may have new ready jobs, for any outlet, that were not
  /// reported to this server.
  void note_asked(std::string_view topic);
  /// The next shard to ask is last.
  std::vector<uint32_t> shards_to_ask(Moment now, std::string_view topic, Outlet outlet);

  /// Like note(), for a reply that names its topics.
  bool note_topics(uint32_t shard, const resp::Value& answer);
  /// The keys for scripts about many topics (scripts/prelude_look.lua).
  redis::TopicKeys shard_keys(uint32_t shard) const { return keys_.topic(shard, {}); }
  /// Like run(), for a plain command. `key` determines the master.
  void call(std::string_view key, std::initializer_list<std::string_view> words, net::redis::Answer answer);

  struct Swept;
  struct Sweep;
  /// Passes on only the number of jobs.
  static absl::AnyInvocable<void(Result<Swept>)> how_many(Reply<uint64_t> reply);
  void sweep(const std::shared_ptr<Sweep>& sweep);
  void send_share(const std::shared_ptr<Sweep>& sweep, uint32_t shard, uint32_t share);
  struct Listing;
  void list_next(const std::shared_ptr<Listing>& listing);
  void finish_listing(const std::shared_ptr<Listing>& listing);
  struct Locating;
  void locate_next(const std::shared_ptr<Locating>& locating);
  struct Forecasting;
  void forecast_next(const std::shared_ptr<Forecasting>& forecasting, uint32_t shard, std::string_view after,
                     std::shared_ptr<redis::Gather<Forecast>> gather);
  void count_next(Moment now, uint32_t shard, std::string_view after,
                  std::shared_ptr<redis::Gather<TopicCounts>> gather);
  struct Loading;
  void load_next(const std::shared_ptr<Loading>& loading, std::string_view from);
  /// Requests new usage figures if the present ones are a second old (or several seconds if there are very
  /// many topics). Needs no tick of its own.
  void refresh_usage(Moment now);
  struct Measuring;
  void measure(Reply<bool> reply);
  void measure_next(const std::shared_ptr<Measuring>& measuring);

  /// The result of a call, with its error explained for the client.
  Result<resp::Value> heard(Result<resp::Value> answer, const redis::Refused& call);
  void note_if_lost(const Result<resp::Value>& answer) {
    if (!answer.ok() && answer.error().code == ErrorCode::kUnavailable) doubt_.note_lost();
  }
  /// Handles news of another server or of this one.
  void hear(std::string_view message);
  void hear_due(std::string_view text);
  /// Call when news may have been missed: visits every shard, and announces every topic that was taken from.
  void look_at_everything();
  /// Walks through all topics to find what was not reported. Done rarely, because every change is published,
  /// and whenever news may have been missed.
  void look_for_missed(Moment now);
  void look_for_missed_in(Moment now, uint32_t shard, std::string_view after);
  /// Puts jobs without a place back, in topics of one shard: one topic after the other, in steps. A topic
  /// that was processed a short time ago is skipped.
  struct Mending;
  /// Whether it may begin, and then takes note of it. An empty topic stands for the shard's schedules.
  bool begins_mending(Moment now, uint32_t shard, std::string_view topic);
  void mend(Moment now, uint32_t shard, const resp::Value& topics);
  void mend_next(const std::shared_ptr<Mending>& mending);
  void begin_round(uint32_t shard, Moment now);
  void head_came(uint32_t shard, const Result<resp::Value>& answer);
  /// What a shard's head said about the cold store, or a verb of this server made necessary.
  void look_at_cold(Moment now, uint32_t shard, char what);
  /// Processes a due entry of the shard's head: "d", "l" or "k", and a topic.
  void look_at(uint32_t shard, std::string_view entry);
  void end_call(uint32_t shard);
  /// What every script about schedules says first. False: that is no such answer.
  bool note_alarm(uint32_t shard, const resp::Value& answer);
  /// Has the shard's due schedules reported.
  void look_at_schedules(uint32_t shard);
  /// Looks whether schedules of the shard have lost a key, or, with `from`, goes on putting them back.
  void mend_schedules(Moment now, uint32_t shard, std::string_view from);
  Status read_turns(uint32_t shard, const std::vector<uint32_t>& items, const resp::Value& answer,
                    std::vector<TurnAnswer>& all);
  struct ScheduleListing;
  void list_schedules_next(const std::shared_ptr<ScheduleListing>& listing);
  void ask_for_schedules(const std::shared_ptr<ScheduleListing>& listing, uint32_t shard);
  /// Records the expired leases in the reply of ended.lua, if any.
  void note_ended(uint32_t shard, const std::string& topic, const resp::Value& answer);

  /// Leaves a reply that needs no call to Redis to the next poll().
  template <class T>
  void answer(Reply<T>& reply, Result<T> result) {
    answers_.push_back(
        [reply = std::move(reply), result = std::move(result)]() mutable { reply(std::move(result)); });
  }

  net::redis::Client& client_;
  RedisEngineOptions options_;
  redis::Keyspace keys_;
  std::string channel_;
  redis::Driving driving_;
  redis::Hints hints_;
  redis::Doubt doubt_;
  std::unique_ptr<redis::ColdTier> cold_;
  Moment now_ = Moment::min();        ///< of the last tick
  std::set<uint32_t> wished_shards_;  ///< may need bodies from the cold store
  std::set<uint32_t> far_shards_;     ///< may have bodies that are to be moved to the cold store
  /// Topics that were taken from, and topics of calls that got no reply. They are announced at once after a
  /// reconnect; look_for_missed() finds the others.
  std::set<std::pair<std::string, Outlet>> asked_topics_;
  uint32_t first_shard_ = 0;  ///< the next take asks this shard first
  Random random_;             ///< different for each server
  uint64_t nonce_ = 0;        ///< of the leases of this turn's takes; never 0
  std::string problem_;
  /// the deployment does not have the layout that this server expects
  std::optional<Error> refused_;
  std::string sender_;                         ///< the name of this server in its news
  std::vector<std::string> senders_;           ///< by shard: the sender in this server's news
  std::vector<std::string> watching_senders_;  ///< the same while it watches_due_
  std::vector<redis::JointCall> joint_calls_;  ///< not sent yet; one for each topic in a shard
  std::shared_ptr<char> alive_ = std::make_shared<char>();

  EngineUsage usage_;
  bool is_out_of_memory_ = false;       ///< a master accepts no new jobs; as old as usage_
  Moment usage_asked_ = Moment::min();  ///< when the figures were last requested
  uint32_t usage_steps_ = 1;            ///< how many calls to each shard that took
  uint64_t measured_ = 0;               ///< the latest request whose figures are in use
  uint64_t measurings_ = 0;             ///< number of requests so far

  Moment missed_asked_ = Moment::min();  ///< when look_for_missed() last began
  uint32_t missed_walks_ = 0;            ///< shards in which it is still running
  uint64_t mended_ = 0;
  uint64_t mended_schedules_ = 0;
  /// when mend() last began, by shard and topic
  std::map<std::pair<uint32_t, std::string>, Moment> mended_topics_;

  // Delivered by the next poll().
  Answers answers_;
  std::set<std::pair<std::string, Outlet>> ready_topics_;
  std::vector<LeaseInfo> ended_;
  std::vector<std::vector<StoredSchedule>> due_schedules_;  ///< one report each
  std::vector<DueJob> due_jobs_;
  uint64_t due_left_out_ = 0;
  bool watches_due_ = false;
  std::vector<std::string> told_;  ///< by other servers
  bool settings_changed_ = false;  ///< by another server, as far as this one knows
};

}  // namespace delayq
