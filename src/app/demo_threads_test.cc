#include <filesystem>
#include <sstream>
#include <stdlib.h>

#include <gmock/gmock.h>

#include "app/demo.h"

namespace delayq {
namespace {

using testing::HasSubstr;

class Demo : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(directory_.data()), nullptr); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string directory_ = testing::TempDir() + "delayq-demo-XXXXXX";
};

TEST_F(Demo, TellsWhatHappensToAJob) {
  std::ostringstream out;
  ASSERT_TRUE(run_demo(directory_, out).ok());
  const std::string told = out.str();
  for (const char* line : {"delayed until +30m", "conflict: id \"1001\" is already delayed", "cancelled",
                           "moved, same id", "nothing: never early", "1001 {\"pay\":1}, attempt 1",
                           "will be tried again at +10m10s", "attempt 2", "delayed, \"lease ran out\"",
                           "stale_lease", "attempts used up: dead", "dead, \"bank is still closed\"",
                           "1 ready again", "done", "4 cancelled", "flushed; 0 leases were still out"}) {
    EXPECT_THAT(told, HasSubstr(line));
  }
}

TEST_F(Demo, FailsWhereThereIsNoRoomForADirectory) {
  std::ostringstream out;
  EXPECT_EQ(run_demo("/dev/null/nowhere", out).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace delayq
