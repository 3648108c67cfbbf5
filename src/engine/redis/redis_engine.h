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
#include "engine/redis/driving.h"
#include "engine/redis/explain.h"
#include "engine/redis/joint_call.h"
#include "engine/redis/keys.h"
#include "engine/redis/lease.h"
#include "net/redis/client.h"

namespace delayq {

struct RedisEngineOptions {
  std::string prefix = "delayq";             ///< of all keys
  std::string prefix_name = "redis.prefix";  ///< where an operator chooses it, for advice
  redis::Shards shards{};                    ///< the same for all servers of a deployment, for ever
  /// Who this server is among those that share the deployment. Never two alike at the same time.
  std::string server = "server";
  /// How long this server drives a shard without saying so again: when it dies, another takes over after
  /// that. A little less than the 2 s that are promised.
  Millis hold{1'800};
  /// Drives nothing, listens to nobody and settles nothing: load_settings() and topics() write nothing then.
  /// For these two only.
  bool only_looks = false;
};

/// Jobs in Redis, shared by any number of servers. Every transition is one script on one shard (ADR 0012).
///
/// Order. Calls about a topic in one shard are carried out in the order of the verbs that made them, and so
/// are those about a whole shard, so a verb sees all that was called before it, also when it asks several
/// shards; what else holds of those is said at each of them. Verbs that ask the same of a topic are sent
/// together by poll(). Of verbs that name jobs of more than 4 MiB in a topic and shard, the first jobs are
/// dealt with in this order, and the others by further calls, between which other verbs may come.
///
/// While Redis is away every verb is answered with kUnavailable.
class RedisEngine final : public Engine {
 public:
  /// The client outlives the engine, and is not polled by anyone else.
  RedisEngine(net::redis::Client& client, RedisEngineOptions options);
  /// Gives up driving, so that another server need not wait for it.
  ~RedisEngine() override;
  RedisEngine(const RedisEngine&) = delete;
  RedisEngine& operator=(const RedisEngine&) = delete;

  /// What is wrong with the keys of the deployment (another program has one, or one is damaged), with advice,
  /// as the last call that met it said; empty: none did so far.
  std::string_view problem() const { return problem_; }
  /// Jobs so far that had lost their place among the keys of their topic, and were put back (mend.lua).
  uint64_t mended() const { return mended_; }
  /// The same of schedules (mend_schedules.lua).
  uint64_t mended_schedules() const { return mended_schedules_; }

  // ---- a job's life (life_*.cc)
  void push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) override;
  /// With several shards: asks those that may have ready jobs, one after the other, until it has enough.
  /// Verbs that are called meanwhile come between two shards.
  void take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) override;
  void ack(Moment now, std::span<const AckRequest> leases, Reply<std::vector<AckOutcome>> reply) override;
  void nack(Moment now, std::span<const NackRequest> leases, Reply<std::vector<NackOutcome>> reply) override;
  void extend(Moment now, std::span<const ExtendRequest> leases,
              Reply<std::vector<ExtendAnswer>> reply) override;
  void inspect(Moment now, std::span<const LeaseRef> leases, Reply<std::vector<LeaseInfo>> reply) override;
  void cancel(Moment now, std::span<const JobRef> jobs, Reply<std::vector<CancelOutcome>> reply) override;
  void reschedule(Moment now, std::span<const RescheduleRequest> jobs,
                  Reply<std::vector<RescheduleOutcome>> reply) override;

  // ---- many at once (look_bulk.cc, look_sweeps.cc). With several shards the oldest of each shard count as
  // the oldest of all; what is more than one call may do is done by further calls, and verbs come between
  // them.
  void restore(Moment now, std::span<const RestoreRequest> jobs,
               Reply<std::vector<PushAnswer>> reply) override;
  void cancel_group(Moment now, const GroupCancelRequest& request, Reply<GroupCancelAnswer> reply) override;
  void redrive(Moment now, std::string_view topic, std::span<const std::string_view> ids,
               Reply<uint64_t> reply) override;
  void redrive_oldest(Moment now, std::string_view topic, uint32_t max, Reply<uint64_t> reply) override;
  void purge(Moment now, std::string_view topic, JobState state, uint32_t max,
             Reply<uint64_t> reply) override;
  void trim(Moment now, const TrimRequest& request, Reply<TrimAnswer> reply) override;

  // ---- looking around (look_jobs.cc, look_list.cc, look_topics.cc, look_usage.cc)
  void get(Moment now, const JobRef& job, Reply<std::optional<FoundJob>> reply) override;
  void locate(Moment now, std::string_view id, Among among, Reply<std::vector<std::string>> reply) override;
  void list(Moment now, const ListRequest& request, Reply<JobPage> reply) override;
  void counts(Moment now, std::string_view topic, Reply<TopicCounts> reply) override;
  void topics(Moment now, std::string_view cursor, uint32_t limit, Reply<TopicPage> reply) override;
  void forecast(Moment now, const ForecastRequest& request, Reply<Forecast> reply) override;
  EngineUsage usage() const override;
  CommitFigures commits() const override;

  // ---- notes, copies (look_settings.cc)
  void store_settings(std::string_view topic, std::string_view settings, Reply<bool> reply) override;
  void load_settings(Reply<std::vector<TopicSettings>> reply) override;

  // ---- schedules (schedules.cc)
  void turn(Moment now, std::span<const TurnRequest> requests, Reply<std::vector<TurnAnswer>> reply) override;
  void get_schedule(Moment now, std::string_view name, Reply<std::optional<StoredSchedule>> reply) override;
  void list_schedules(Moment now, const ScheduleListRequest& request, Reply<SchedulePage> reply) override;
  void flush(Reply<bool> reply) override;
  void backup(std::string_view name, Reply<BackupReport> reply) override;

  // ---- running (running.cc)
  bool has_parts() const override { return keys_.shards() > 1; }
  Moment tick(Moment now) override;
  bool poll(EngineListener& listener) override;
  void set_wakeup(std::function<void()> wakeup) override;

 private:
  friend class RedisEngineTest;
  using Answers = std::vector<absl::AnyInvocable<void()>>;

  /// Makes sure that the deployment has as many shards as this server believes; else everything is refused.
  void check_layout();
  void layout_came(const Result<resp::Value>& answer);
  /// Runs a script after all that was called before it. Nothing is answered to an engine that is gone.
  void run(const net::redis::Script& script, std::span<const std::string_view> keys,
           const redis::Arguments& arguments, net::redis::Answer answer);
  /// The same, whatever else was called.
  void submit(const net::redis::Script& script, std::span<const std::string_view> keys,
              const redis::Arguments& arguments, net::redis::Answer answer);
  /// What every script about a topic is told first (see scripts/prelude.lua); its own arguments follow.
  redis::Arguments arguments_for(Moment now, uint32_t shard, std::string_view topic) const;
  /// Every such script answers first when its shard is to be looked at next, if that has changed, and which
  /// outlets got ready jobs. Takes note of both. False: that is no such answer.
  bool note(uint32_t shard, std::string_view topic, const resp::Value& answer);
  /// A call that is about to be made may give the topic ready jobs in that shard: takes that are called after
  /// it ask the shard, though the answer has not come.
  void expect_ready(uint32_t shard, std::string_view topic) {
    hints_.note_ready(shard, topic, Outlet::kTopic);
    hints_.note_ready(shard, topic, Outlet::kCallback);
  }
  /// The topic has got ready jobs in that shard: tells the listener, and takes ask it.
  void note_ready(uint32_t shard, std::string_view topic, Outlet outlet);
  /// The answer of a bundle's call, as one of those that `gather` puts together. `read` reads what the script
  /// said into the verb's answer, and answers false when that makes no sense: bool(const resp::Value&, const
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
  /// Makes the call of a bundle, alone.
  template <class T, class Read>
  void send(const net::redis::Script& script, redis::Bundle bundle, const redis::Arguments& arguments,
            redis::Gather<T>& gather, Read read) {
    const redis::TopicKeys keys = keys_.topic(bundle.shard, bundle.topic);
    run(script, keys.all(), arguments, expect(script, std::move(bundle), gather, read));
  }
  /// The call that a verb's items go into: one that verbs before it have begun, if that is for the same and
  /// has room. It is sent before any other call about the topic, and at the latest by poll(). The caller adds
  /// the items' arguments to what this answers.
  redis::Arguments& join(const redis::Terms& terms, uint32_t items, net::redis::Answer answer);
  void send_joint(redis::JointCall call);
  /// Sends what of it is not answered yet, and goes on until all is.
  void send_part(const std::shared_ptr<redis::JointCall>& call);
  void send_all_joint();
  /// Calls a script about leases for those of a batch that may be current. `add` adds the arguments of one
  /// after its lease, for a shard; `read` is as above. `numbers` answers the call's first arguments, an array
  /// that those in one call have in common.
  template <class T, class Request, class Numbers, class Add, class Read>
  void send_leases(const net::redis::Script& script, Moment now, std::span<const Request> requests,
                   redis::Gather<T>& gather, Numbers numbers, Add add, Read read,
                   redis::Share share = redis::Share::kOneEach);
  /// The error of an answer that is not as its script's RETURNS says.
  static Error not_understood(std::string_view script);

  /// The shard's part of a number that is for a whole topic: how many jobs may be reserved, or are kept.
  /// Together they are that number, unless it is smaller than that of the shards: each has at least 1 of it.
  uint32_t share_of(uint32_t count, uint32_t shard) const;

  struct Taking;
  void take_from_next(const std::shared_ptr<Taking>& taking);
  void go_on_taking(const std::shared_ptr<Taking>& taking, const Status& status);
  Status read_taken(uint32_t shard, Taking& taking, const resp::Value& answer, uint32_t asked,
                    uint64_t heard);
  void note_asked(std::string_view topic, Outlet outlet);
  /// A call was not answered: perhaps the topic has got ready jobs, for whatever outlet, that nobody here has
  /// heard of.
  void note_asked(std::string_view topic);
  /// The next one last.
  std::vector<uint32_t> shards_to_ask(Moment now, std::string_view topic, Outlet outlet);

  /// As note(), of an answer that names its topics.
  bool note_topics(uint32_t shard, const resp::Value& answer);
  /// The keys for scripts about many topics (scripts/prelude_look.lua).
  redis::TopicKeys shard_keys(uint32_t shard) const { return keys_.topic(shard, {}); }
  /// As run(), for a plain command. `key` says where to.
  void call(std::string_view key, std::initializer_list<std::string_view> words, net::redis::Answer answer);

  struct Swept;
  struct Sweep;
  /// Hands on how many jobs it was.
  static absl::AnyInvocable<void(Result<Swept>)> how_many(Reply<uint64_t> reply);
  void sweep(const std::shared_ptr<Sweep>& sweep);
  void send_share(const std::shared_ptr<Sweep>& sweep, uint32_t shard, uint32_t share);
  struct Listing;
  void list_next(const std::shared_ptr<Listing>& listing);
  struct Locating;
  void locate_next(const std::shared_ptr<Locating>& locating);
  struct Forecasting;
  void forecast_next(const std::shared_ptr<Forecasting>& forecasting, uint32_t shard, std::string_view after,
                     std::shared_ptr<redis::Gather<Forecast>> gather);
  void count_next(Moment now, uint32_t shard, std::string_view after,
                  std::shared_ptr<redis::Gather<TopicCounts>> gather);
  struct Loading;
  void load_next(const std::shared_ptr<Loading>& loading, std::string_view from);
  /// Asks for new figures of use when those that are there are a second old, or several when there are very
  /// many topics. No tick is wanted for this alone.
  void refresh_usage(Moment now);
  struct Measuring;
  void measure(Reply<bool> reply);
  void measure_next(const std::shared_ptr<Measuring>& measuring);

  /// What came of a call, as who called is told it.
  Result<resp::Value> heard(Result<resp::Value> answer, const redis::Refused& call);
  void note_if_lost(const Result<resp::Value>& answer) {
    if (!answer.ok() && answer.error().code == ErrorCode::kUnavailable) doubt_.note_lost();
  }
  /// What another server said, or this one.
  void hear(std::string_view message);
  /// News may have been missed: every shard is looked at, and every topic that somebody asked about is
  /// announced.
  void look_at_everything();
  /// Walks through all topics, to see what was not heard of: seldom, since all is told as it happens, and
  /// after news may have been missed.
  void look_for_missed(Moment now);
  void look_for_missed_in(Moment now, uint32_t shard, std::string_view after);
  /// Puts jobs of topics of a shard back that have no place: one topic after the other, in steps. One that
  /// was dealt with a short time ago is left alone.
  struct Mending;
  /// Whether it may begin, and then takes note of it. An empty topic stands for the shard's schedules.
  bool begins_mending(Moment now, uint32_t shard, std::string_view topic);
  void mend(Moment now, uint32_t shard, const resp::Value& topics);
  void mend_next(const std::shared_ptr<Mending>& mending);
  void begin_round(uint32_t shard, Moment now);
  void head_came(uint32_t shard, const Result<resp::Value>& answer);
  /// Looks at what the shard's head says is due: "d", "l" or "k", and a topic.
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
  /// Leases whose end the answer of a look tells, if any.
  void note_ended(uint32_t shard, const std::string& topic, const resp::Value& answer);

  /// Leaves an answer that needs no asking to the next poll().
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
  /// That somebody took from, or tried to, and those whose calls were not answered. These are announced at
  /// once after a break; look_for_missed() finds the others.
  std::set<std::pair<std::string, Outlet>> asked_topics_;
  uint32_t first_shard_ = 0;  ///< that the next take asks first
  Random random_;             ///< another with each server
  uint64_t nonce_ = 0;        ///< of the leases that this turn's takes give; never 0
  std::string problem_;
  std::optional<Error> refused_;               ///< the deployment is not as this server believes
  std::vector<std::string> senders_;           ///< by shard: how this server signs its news
  std::vector<redis::JointCall> joint_calls_;  ///< not sent yet; one for a topic in a shard
  std::shared_ptr<char> alive_ = std::make_shared<char>();

  EngineUsage usage_;
  bool is_out_of_memory_ = false;       ///< a master takes no new jobs; as old as usage_
  Moment usage_asked_ = Moment::min();  ///< when its figures were asked for last
  uint32_t usage_steps_ = 1;            ///< how many calls to each shard that took
  uint64_t measured_ = 0;               ///< the latest of the askings that has figures to show
  uint64_t measurings_ = 0;             ///< askings so far

  Moment missed_asked_ = Moment::min();  ///< when look_for_missed() began last
  uint32_t missed_walks_ = 0;            ///< shards in which it is going on
  uint64_t mended_ = 0;
  uint64_t mended_schedules_ = 0;
  /// when mend() last began, by shard and topic
  std::map<std::pair<uint32_t, std::string>, Moment> mended_topics_;

  // What the next poll() hands out.
  Answers answers_;
  std::set<std::pair<std::string, Outlet>> ready_topics_;
  std::vector<LeaseInfo> ended_;
  std::vector<std::vector<StoredSchedule>> due_schedules_;  ///< one report each
  bool settings_changed_ = false;                           ///< by another server, as far as is known
};

}  // namespace delayq
