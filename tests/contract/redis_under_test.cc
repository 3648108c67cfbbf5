#include "tests/contract/redis_under_test.h"

#include <stdexcept>
#include <string>

#include "engine/redis/redis_engine.h"
#include "net/loop.h"
#include "net/redis/open_client.h"
#include "tests/support/redis_process.h"

namespace delayq::contract {

namespace {

/// The clock of these tests jumps by years, that of Redis does not: a hold that is never renewed keeps out of the way.
constexpr Millis kHold = std::chrono::days{36'525};
constexpr uint32_t kManyShards = 4;
/// How long one turn waits for answers that are outstanding. They come far sooner.
constexpr Millis kTurn{100};

support::RedisProcess& shared_redis() {
  static support::RedisProcess redis;
  return redis;
}

class RedisUnderTest final : public EngineUnderTest {
 public:
  explicit RedisUnderTest(uint32_t shards) {
    static int tests = 0;
    options_.prefix = "test" + std::to_string(++tests);
    options_.shards = shards;
    options_.hold = kHold;
    net::redis::ClientOptions client;
    client.addresses = {{"127.0.0.1", shared_redis().port()}};
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
    const bool has_work = client_->outstanding() > 0;
    turn();
    return has_work;
  }

  void reopen() override {
    engine_.reset();
    options_.server = "server" + std::to_string(++opened_);
    engine_ = std::make_unique<RedisEngine>(*client_, options_);
  }

  void lose_power() override { reopen(); }

 private:
  void turn() {
    loop_.finish_turn();
    const bool is_waiting = client_ != nullptr && (client_->outstanding() > 0 || !client_->is_connected());
    loop_.wait_until(net::Loop::now() + (is_waiting ? kTurn : Millis{0}));
  }

  net::Loop loop_;
  RedisEngineOptions options_;
  std::unique_ptr<net::redis::Client> client_;
  std::unique_ptr<RedisEngine> engine_;
  int opened_ = 0;
};

}  // namespace

std::unique_ptr<EngineUnderTest> make_redis() { return std::make_unique<RedisUnderTest>(1); }

std::unique_ptr<EngineUnderTest> make_redis_shards() { return std::make_unique<RedisUnderTest>(kManyShards); }

}  // namespace delayq::contract
