#include "tests/contract/engines.h"

#include <array>

#include "engine/memory/memory_engine.h"

namespace delayq::contract {

namespace {

class MemoryUnderTest final : public EngineUnderTest {
 public:
  Engine& engine() override { return engine_; }

 private:
  MemoryEngine engine_;
};

constexpr std::array kEngines{
    EngineEntry{"memory", false,
                []() -> std::unique_ptr<EngineUnderTest> { return std::make_unique<MemoryUnderTest>(); }},
};

}  // namespace

std::span<const EngineEntry> engines() { return kEngines; }

}  // namespace delayq::contract
