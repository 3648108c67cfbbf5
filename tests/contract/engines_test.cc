#include "tests/contract/engines.h"

#include <filesystem>
#include <set>
#include <string>

#include <gmock/gmock.h>

namespace delayq::contract {
namespace {

/// Engines are the folders under src/engine that define a class derived from Engine in a
/// file of the same name.
std::set<std::string> engine_folders() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(DELAYQ_ENGINE_FOLDER)) {
    if (entry.is_directory()) names.insert(entry.path().filename().string());
  }
  return names;
}

TEST(Engines, EveryFolderUnderEngineIsInTheSuite) {
  std::set<std::string> registered;
  // "redis_cluster" is the redis engine with other servers below it.
  for (const EngineEntry& entry : engines()) registered.emplace(entry.name.substr(0, entry.name.find('_')));
  EXPECT_EQ(registered, engine_folders()) << "an engine without the contract suite is not an engine";
}

TEST(Engines, EachIsMadeFresh) {
  for (const EngineEntry& entry : engines()) {
    const auto one = entry.make();
    const auto other = entry.make();
    EXPECT_NE(&one->engine(), &other->engine()) << entry.name;
    EXPECT_EQ(one->engine().usage().jobs, 0U) << entry.name;
  }
}

}  // namespace
}  // namespace delayq::contract
