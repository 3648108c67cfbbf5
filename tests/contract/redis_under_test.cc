#include "tests/contract/redis_under_test.h"

#include <deque>
#include <functional>
#include <stdexcept>
#include <string>

#include "engine/kafka/ladder.h"
#include "engine/redis/redis_engine.h"
#include "net/loop.h"
#include "net/redis/client.h"
#include "tests/support/fake_cold_store.h"
#include "tests/support/kafka_process.h"
#include "tests/support/redis_cluster.h"
#include "tests/support/redis_process.h"
#include "tests/support/redis_sentinels.h"

namespace delayq::contract {

namespace {

/// The clock of these tests jumps by years, the clock of Redis does not: with such a long hold,
/// renewal plays no role.
constexpr Millis kHold = std::chrono::days{36'525};
constexpr uint32_t kManyShards = 4;
constexpr uint32_t kClusterShards = 16;
/// How long one turn waits for outstanding replies. They come much earlier.
constexpr Millis kTurn{100};

net::redis::ClientOptions to(const std::vector<uint16_t>& ports) {
  net::redis::ClientOptions options;
  options.reply_timeout = std::chrono::seconds{60};  // A busy machine is not a fault.
  for (const uint16_t port : ports) options.addresses.push_back({"127.0.0.1", port});
  return options;
}

net::redis::ClientOptions to_server() {
  static support::RedisProcess redis;
  return to({redis.port()});
}

net::redis::ClientOptions to_sentinels() {
  static support::RedisSentinels redis;
  // No server fails here; a master that is slow on a busy machine must not be replaced.
  for (const auto& sentinel : redis.sentinels())
    sentinel->command(
        {"SENTINEL", "SET", support::RedisSentinels::kMasterName, "down-after-milliseconds", "60000"});
  net::redis::ClientOptions options = to(redis.sentinel_ports());
  options.mode = net::redis::Mode::kSentinel;
  options.master_name = support::RedisSentinels::kMasterName;
  return options;
}

net::redis::ClientOptions to_cluster() {
  // For the same reason the nodes have a long timeout.
  static support::RedisCluster redis({"--cluster-node-timeout", "15000"});
  net::redis::ClientOptions options = to(redis.ports());
  options.mode = net::redis::Mode::kCluster;
  return options;
}

class RedisUnderTest final : public EngineUnderTest {
 public:
  using MakeStore = std::function<std::unique_ptr<redis::ColdStore>(net::Loop& loop)>;

  RedisUnderTest(net::redis::ClientOptions client, uint32_t shards, MakeStore make_store = {})
      : make_store_(std::move(make_store)) {
    static int tests = 0;
    options_.prefix = "test" + std::to_string(++tests);
    options_.shards = redis::new_shards(options_.prefix, shards);
    options_.hold = kHold;
    auto opened = net::redis::open_client(loop_, std::move(client));
    if (!opened.ok()) throw std::runtime_error(to_string(opened.error()));
    client_ = std::move(*opened);
    support::wait_until("a connection to Redis", [&] {
      turn();
      return client_->is_connected();
    });
    reopen();
  }

  Engine& engine() override { return *engine_; }

  bool pump() override {
    const bool has_work = client_->outstanding() > 0 || (cold_store_ && cold_store_->outstanding() > 0);
    turn();
    return has_work;
  }

  void reopen() override {
    engine_.reset();
    if (make_store_) {
      cold_store_.reset();  // before the next one joins the group
      cold_store_ = make_store_(loop_);
      options_.cold_store = cold_store_.get();
    }
    options_.server = "server" + std::to_string(++opened_);
    engine_ = std::make_unique<RedisEngine>(*client_, options_);
  }

  void lose_power() override { reopen(); }

 private:
  void turn() {
    loop_.finish_turn();
    const bool is_waiting =
        (client_ != nullptr && (client_->outstanding() > 0 || !client_->is_connected())) ||
        (cold_store_ != nullptr && cold_store_->outstanding() > 0);
    loop_.wait_until(net::Loop::now() + (is_waiting ? kTurn : Millis{0}));
  }

  net::Loop loop_;
  RedisEngineOptions options_;
  std::unique_ptr<net::redis::Client> client_;
  MakeStore make_store_;
  std::unique_ptr<redis::ColdStore> cold_store_;
  std::unique_ptr<RedisEngine> engine_;
  int opened_ = 0;
};

}  // namespace

std::unique_ptr<EngineUnderTest> make_redis() { return std::make_unique<RedisUnderTest>(to_server(), 1); }

std::unique_ptr<EngineUnderTest> make_redis_shards() {
  return std::make_unique<RedisUnderTest>(to_server(), kManyShards);
}

namespace {

std::unique_ptr<EngineUnderTest> over_shelf(const std::shared_ptr<support::ColdShelf>& shelf) {
  return std::make_unique<RedisUnderTest>(
      to_server(), 1, [shelf](net::Loop&) { return std::make_unique<support::FakeColdStore>(*shelf); });
}

/// A consumer that is in its group as long as it exists: the constructor returns when it has partitions of
/// all topics, and the destructor leaves the group, so that the next consumer need not wait for a dead one.
class GroupMember final : public kafka::Consumer {
 public:
  GroupMember(std::unique_ptr<kafka::Consumer> consumer, size_t partitions) : consumer_(std::move(consumer)) {
    support::wait_until(
        "the partitions are assigned",
        [&] {
          // It may read one record besides, so all that comes is kept for the first poll().
          first_.push_back(consumer_->poll(0, 1));
          const auto& change = first_.back().rebalance;
          if (change && change->kind == kafka::Rebalance::Kind::kAssigned)
            assigned_ += change->partitions.size();
          return assigned_ >= partitions;
        },
        60);
  }
  ~GroupMember() override {
    consumer_->close();
    support::wait_until("the group is left", [&] {
      if (consumer_->poll(0, 1).rebalance) consumer_->let_go();
      return consumer_->is_closed();
    });
  }

  kafka::Polled poll(size_t max_records, size_t max_bytes) override {
    if (first_.empty()) return consumer_->poll(max_records, max_bytes);
    kafka::Polled polled = std::move(first_.front());
    first_.pop_front();
    return polled;
  }
  bool may_have_more() const override { return !first_.empty() || consumer_->may_have_more(); }
  void pause(std::span<const kafka::PartitionId> partitions) override { consumer_->pause(partitions); }
  void resume(std::span<const kafka::PartitionId> partitions) override { consumer_->resume(partitions); }
  void commit(std::span<const kafka::Position> positions) override { consumer_->commit(positions); }
  void let_go() override { consumer_->let_go(); }
  void close() override { consumer_->close(); }
  bool is_closed() const override { return consumer_->is_closed(); }
  std::optional<int64_t> end_of(const kafka::PartitionId& partition) const override {
    return consumer_->end_of(partition);
  }
  std::string_view trouble() const override { return consumer_->trouble(); }

 private:
  std::unique_ptr<kafka::Consumer> consumer_;
  std::deque<kafka::Polled> first_;
  size_t assigned_ = 0;
};

/// Each test has its own topics on a broker that all share.
std::unique_ptr<EngineUnderTest> over_broker(kafka::LadderOptions ladder) {
  // A busy machine is not a fault here either: the broker's own heartbeat may be late.
  static support::KafkaProcess broker({"broker.session.timeout.ms=60000"});
  static int tests = 0;
  ladder.prefix = "ladder" + std::to_string(++tests);
  ladder.partitions = 1;
  auto admin = kafka::open_admin(broker.client());
  if (!admin.ok()) throw std::runtime_error(to_string(admin.error()));
  if (const Status status = kafka::prepare_topics(**admin, ladder, std::chrono::seconds{30}); !status.ok())
    throw std::runtime_error(to_string(status.error()));
  return std::make_unique<RedisUnderTest>(to_server(), 1, [ladder](net::Loop& loop) {
    const auto wakeup = [&loop] { loop.wake(); };
    kafka::Ladder::Clients clients;
    kafka::ClientOptions at_once = broker.client();
    at_once.settings = {{"linger.ms", "0"}};
    clients.producer = std::move(*kafka::open_producer({.client = std::move(at_once), .wakeup = wakeup}));
    auto consumer = std::move(*kafka::open_consumer({.client = broker.client(),
                                                     .group = ladder.prefix,
                                                     .topics = kafka::ladder_topics(ladder),
                                                     .wakeup = wakeup}));
    clients.consumer = std::make_unique<GroupMember>(std::move(consumer), ladder.steps.size());
    // The clock of these tests jumps.
    clients.reader = std::move(*kafka::open_reader(
        {.client = broker.client(), .timeout = std::chrono::days{36'525}, .wakeup = wakeup}));
    return std::make_unique<kafka::Ladder>(ladder, std::move(clients));
  });
}

kafka::LadderOptions without_horizon() {
  kafka::LadderOptions ladder;
  ladder.horizon = Millis{0};
  ladder.steps = {Millis{1},      Millis{30},        Millis{1'000},
                  Millis{30'000}, Millis{1'000'000}, Millis{86'400'000}};
  return ladder;
}

}  // namespace

std::unique_ptr<EngineUnderTest> make_kafka() {
  auto shelf = std::make_shared<support::ColdShelf>();
  const kafka::LadderOptions usual;
  shelf->steps = usual.steps;
  shelf->horizon = usual.horizon;
  return over_shelf(shelf);
}

std::unique_ptr<EngineUnderTest> make_kafka_without_horizon() {
  return over_shelf(std::make_shared<support::ColdShelf>());
}

std::unique_ptr<EngineUnderTest> make_kafka_broker() { return over_broker({}); }

std::unique_ptr<EngineUnderTest> make_kafka_broker_without_horizon() {
  return over_broker(without_horizon());
}

std::unique_ptr<EngineUnderTest> make_redis_sentinel() {
  return std::make_unique<RedisUnderTest>(to_sentinels(), 1);
}

std::unique_ptr<EngineUnderTest> make_redis_cluster() {
  return std::make_unique<RedisUnderTest>(to_cluster(), 1);
}

std::unique_ptr<EngineUnderTest> make_redis_cluster_shards() {
  return std::make_unique<RedisUnderTest>(to_cluster(), kClusterShards);
}

}  // namespace delayq::contract
