#include "tests/contract/redis_under_test.h"

#include <string>

#include "tests/contract/redis_server.h"

namespace delayq::contract {

namespace {

/// The clock of these tests jumps by years, that of Redis does not: a hold that is never renewed keeps out of
/// the way.
constexpr Millis kHold = std::chrono::days{36'525};

class RedisUnderTest final : public EngineUnderTest {
 public:
  Engine& engine() override { return server_.engine(); }
  bool pump() override { return server_.pump(); }
  void reopen() override {
    RedisEngineOptions options = server_.options();
    options.server += "'";  // another process has another name
    server_.set_options(std::move(options));
    server_.open();
  }
  void lose_power() override { reopen(); }

 private:
  static RedisEngineOptions options() {
    static int tests = 0;
    RedisEngineOptions options;
    options.prefix = "test" + std::to_string(++tests);
    options.hold = kHold;
    return options;
  }

  RedisServer server_{shared_redis().port(), options()};
};

}  // namespace

support::RedisProcess& shared_redis() {
  static support::RedisProcess redis;
  return redis;
}

std::unique_ptr<EngineUnderTest> make_redis() { return std::make_unique<RedisUnderTest>(); }

}  // namespace delayq::contract
