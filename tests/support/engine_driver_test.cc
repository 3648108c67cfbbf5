// Tests the driver itself: it must detect an engine that breaks the rules for replies.
#include "tests/support/engine_driver.h"

#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "tests/support/forwarding_engine.h"

namespace delayq::support {
namespace {

TEST(EngineDriver, AnswersThatNeverComeFail) {
  struct Deaf final : ForwardingEngine {
    using ForwardingEngine::ForwardingEngine;
    void flush(Reply<bool> reply) override { (void)reply; }
  };
  MemoryEngine inner;
  Deaf deaf(inner);
  EngineDriver driver(deaf);
  EXPECT_THROW(driver.flush(), std::runtime_error);
}

TEST(EngineDriver, AnswersFromInsideTheCallFail) {
  struct Hasty final : ForwardingEngine {
    using ForwardingEngine::ForwardingEngine;
    void flush(Reply<bool> reply) override { reply(true); }
  };
  MemoryEngine inner;
  Hasty hasty(inner);
  EngineDriver driver(hasty);
  EXPECT_THROW(driver.flush(), std::logic_error);
}

TEST(EngineDriver, SecondAnswersFail) {
  struct Twice final : ForwardingEngine {
    using ForwardingEngine::ForwardingEngine;
    void flush(Reply<bool> reply) override { again = std::move(reply); }
    bool poll(EngineListener& listener) override {
      if (again) again(true);
      return inner_.poll(listener);
    }
    Reply<bool> again;
  };
  MemoryEngine inner;
  Twice twice(inner);
  EngineDriver driver(twice);
  driver.flush();
  EXPECT_THROW(twice.poll(driver), std::logic_error);
}

TEST(EngineDriver, ErrorsFailUnlessAskedFor) {
  struct Broken final : ForwardingEngine {
    using ForwardingEngine::ForwardingEngine;
    void flush(Reply<bool> reply) override { late = std::move(reply); }
    bool poll(EngineListener& listener) override {
      if (late) std::exchange(late, nullptr)(Error{ErrorCode::kUnavailable, "flush", "no disk"});
      return inner_.poll(listener);
    }
    Reply<bool> late;
  };
  MemoryEngine inner;
  Broken broken(inner);
  EngineDriver driver(broken);
  EXPECT_THROW(driver.flush(), std::runtime_error);
  const Result<bool> answer = driver.ask<bool>("flush", [&](auto reply) { broken.flush(std::move(reply)); });
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
}

TEST(EngineDriver, PumpsBetweenPolls) {
  struct Slow final : ForwardingEngine {
    using ForwardingEngine::ForwardingEngine;
    bool poll(EngineListener& listener) override { return pumped >= 3 && inner_.poll(listener); }
    int pumped = 0;
  };
  MemoryEngine inner;
  Slow slow(inner);
  EngineDriver driver(slow, [&] { return ++slow.pumped < 3; });
  driver.flush();
  EXPECT_EQ(slow.pumped, 3);
}

}  // namespace
}  // namespace delayq::support
