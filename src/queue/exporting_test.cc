#include "queue/exporting.h"

#include <gmock/gmock.h>

#include "engine/memory/memory_engine.h"
#include "queue/queue.h"
#include "tests/support/queue_driver.h"

namespace delayq {
namespace {

using support::at;
using testing::ElementsAre;
using testing::IsEmpty;

class ExportingTest : public testing::Test {
 protected:
  Result<ExportPage> page(const ExportRequest& request) {
    return queue_.ask<ExportPage>(
        "export", [&](auto reply) { queue_.queue().export_page(queue_.now(), request, std::move(reply)); });
  }

  /// All pages: "topic settings" or "topic/id state". Lets `between` happen after each page.
  std::vector<std::string> walk(ExportRequest request, const std::function<void()>& between = {}) {
    std::vector<std::string> seen;
    std::string cursor;
    for (int pages = 0; pages < 1'000; ++pages) {
      request.cursor = cursor;
      Result<ExportPage> next = page(request);
      if (!next.ok()) return {to_string(next.error())};
      EXPECT_LE(next->items.size(), request.limit + 1);
      for (const ExportItem& item : next->items) {
        seen.push_back(item.settings
                           ? std::string(item.job.topic) + " settings"
                           : std::string(item.job.topic) + "/" + std::string(item.job.id) + " " +
                                 std::string(name_of(item.job.state)) + " " + std::string(item.job.body));
      }
      cursor = next->cursor;
      if (cursor.empty()) return seen;
      if (between) between();
    }
    return {"it never ends"};
  }

  void fill() {
    queue_.push({.topic = "b", .id = "1", .body = "x", .delay = Millis{1'000}});
    queue_.push({.topic = "b", .id = "2", .body = "y"});
    queue_.push({.topic = "b", .id = "3", .body = "z"});
    EXPECT_TRUE(queue_.ack(queue_.pop_one("b").lease).ok());
    queue_.push({.topic = "a", .id = "1", .body = "w", .delay = Millis{500}});
    queue_.set("c", {.paused = true});
    queue_.set("b", {.concurrency = 5});
    queue_.set(kDefaultsName, {.attempts = 3});
  }

  MemoryEngine engine_;
  support::QueueDriver queue_{engine_};
};

TEST_F(ExportingTest, EverythingInOrder) {
  fill();
  const auto everything = ElementsAre("* settings", "a/1 delayed w", "b settings", "b/1 delayed x",
                                      "b/3 ready z", "b/2 done y", "c settings");
  EXPECT_THAT(walk({}), everything);
  for (const uint32_t limit : {1U, 2U, 3U, 7U}) EXPECT_THAT(walk({.limit = limit}), everything) << limit;
}

TEST_F(ExportingTest, NothingIsThere) { EXPECT_THAT(walk({}), IsEmpty()); }

TEST_F(ExportingTest, OneTopicOrOneState) {
  fill();
  EXPECT_THAT(walk({.limit = 1, .topic = "b"}),
              ElementsAre("b settings", "b/1 delayed x", "b/3 ready z", "b/2 done y"));
  EXPECT_THAT(walk({.limit = 1, .state = JobState::kDelayed}), ElementsAre("a/1 delayed w", "b/1 delayed x"));
  EXPECT_THAT(walk({.topic = "b", .state = JobState::kReady}), ElementsAre("b/3 ready z"));
  EXPECT_THAT(walk({.topic = "nobody"}), IsEmpty());
}

TEST_F(ExportingTest, AJobThatMovesOnIsMetAgainRatherThanMissed) {
  for (int i = 0; i < 4; ++i)
    queue_.push({.topic = "t", .id = std::to_string(i), .body = "b", .delay = Millis{100}});
  int pages = 0;
  const std::vector<std::string> seen = walk({.limit = 2}, [&] {
    if (++pages == 1) queue_.run_to(at(100));
  });
  std::set<std::string> ids;
  for (const std::string& line : seen) ids.insert(line.substr(0, 3));
  EXPECT_THAT(ids, ElementsAre("t/0", "t/1", "t/2", "t/3"));
}

TEST_F(ExportingTest, ManyTopicsTakeManyPages) {
  for (int i = 0; i < 300; ++i) queue_.push({.topic = "t" + std::to_string(i), .id = "a", .body = "b"});
  EXPECT_EQ(walk({}).size(), 300U);
}

TEST_F(ExportingTest, WrongQuestions) {
  EXPECT_EQ(page({.limit = 0}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(page({.limit = Limits::kPageJobs + 1}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(page({.topic = "no spaces"}).error().code, ErrorCode::kInvalid);
  for (const std::string_view cursor :
       {"x", "zz", "00", "302e302e", "392e302e74", "302e392e74", "302e302e2a"})
    EXPECT_EQ(page({.cursor = cursor}).error().code, ErrorCode::kInvalid) << cursor;
  EXPECT_TRUE(page({.cursor = "302e302e74"}).ok()) << "0.0.t";
  EXPECT_EQ(page({.cursor = "302e302e74", .topic = "u"}).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace delayq
