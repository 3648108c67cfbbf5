// What no system would write, in each system's layout: it is told by its reason, and the rest is read.
#include "cli/seeds/layout.h"

#include <gmock/gmock.h>

#include "core/limits.h"
#include "tests/support/fake_seed_redis.h"

namespace delayq::cli::seeds {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

class Collected final : public Sink {
 public:
  Moment now() const override { return from_unix_ms(1'700'000'000'000); }
  Status job(SeedJob job) override {
    jobs.emplace(job.id, std::move(job));
    return {};
  }
  void unreadable(std::string where, std::string why) override {
    problems[std::move(where)] = std::move(why);
  }
  void over() override { ++overs; }
  void gone() override { ++gones; }

  std::map<std::string, SeedJob> jobs;
  std::map<std::string, std::string> problems;
  int overs = 0;
  int gones = 0;
};

class Hostile : public testing::Test {
 protected:
  void text(const std::string& key, std::string value) { redis_.keys[key] = {"string", {std::move(value)}}; }
  void add(const std::string& type, const std::string& key, const std::string& one, const std::string& two) {
    FakeRedis::Entry& entry = redis_.keys[key];
    entry.type = type;
    entry.items.insert(entry.items.end(), {one, two});
  }
  void zadd(const std::string& key, const std::string& member, const std::string& score) {
    add("zset", key, member, score);
  }
  Status read(std::string_view system) {
    found_ = {};
    return layout_of(system, {})->read(redis_.reader(), found_);
  }

  FakeRedis redis_;
  Collected found_;
};

// ---- delay_queue_callback

TEST_F(Hostile, CallbackJobsThatAreNone) {
  const auto put = [this](const std::string& sign, const std::string& json, const std::string& score) {
    text(sign, json);
    zadd("dqc_bucket_1", sign, score);
  };
  const std::string good = R"({"topic":"t","id":"good","callback":"http://x/","body":1})";
  put("t-good", good, "1800000000");
  put("cut", good.substr(0, 20), "1800000000");
  put("empty", "", "1800000000");
  put("array", "[1]", "1800000000");
  put("deep", std::string(5'000, '['), "1800000000");
  put("bytes", "{\"topic\":\"\xff\xfe\"}", "1800000000");
  put("no topic", R"({"id":"1","callback":"http://x/"})", "1800000000");
  put("no id", R"({"topic":"t","callback":"http://x/"})", "1800000000");
  put("no callback", R"({"topic":"t","id":"1"})", "1800000000");
  put("types", R"({"topic":["t"],"id":{"a":1},"callback":true})", "1800000000");
  put("never", good, "inf");
  put("before", good, "-1");
  put("far", good, "1e300");
  put("nan", good, "nan");
  zadd("dqc_bucket_1", "nothing there", "1800000000");
  redis_.keys["a hash"] = {"hash", {"a", "b"}};
  zadd("dqc_bucket_1", "a hash", "1800000000");
  text("dqc_bucket_2", "not a zset");
  zadd("dqc_bucket_x", "t-good", "1800000000");

  ASSERT_TRUE(read("callback").ok());
  EXPECT_THAT(found_.jobs, ElementsAre(Pair("good", testing::_)));
  EXPECT_EQ(found_.gones, 2);
  EXPECT_THAT(found_.problems, testing::SizeIs(13));
  for (const char* sign : {"cut", "empty", "array", "deep", "bytes"}) {
    EXPECT_THAT(found_.problems, Contains(Pair(std::string("dqc_bucket_1 ") + sign, HasSubstr("job"))));
  }
  for (const char* sign : {"never", "before", "far", "nan"})
    EXPECT_EQ(found_.problems[std::string("dqc_bucket_1 ") + sign], "its score is not a time");
  EXPECT_EQ(found_.problems["dqc_bucket_1 types"], "the job has no topic");
}

TEST_F(Hostile, ANumberIsATextWhereATextIsMeant) {
  text("s", R"({"topic":7,"id":99999999999999999999999,"callback":"http://x/","body":1e999})");
  zadd("dqc_bucket_1", "s", "0.001");
  ASSERT_TRUE(read("callback").ok());
  ASSERT_THAT(found_.jobs, ElementsAre(Pair("99999999999999999999999", testing::_)));
  EXPECT_EQ(found_.jobs.begin()->second.body, "1e999");
  EXPECT_EQ(found_.jobs.begin()->second.due, from_unix_ms(1));
}

// ---- DelayQ

TEST_F(Hostile, DelayQJobsThatAreNone) {
  using Items = std::vector<std::string>;
  const auto put = [this](const std::string& id, Items fields) {
    fields.insert(fields.end(), {"jobid", id});
    redis_.keys["dqjobs:" + id] = {"hash", std::move(fields)};
  };
  put("good", {"topic", "t", "state", "1", "exectime", "5", "tryes", "99999999999999999999", "ttr", "-4",
               "addtime", "x", "name", "\xff\xfe"});
  put("no state", {"topic", "t", "exectime", "5"});
  put("state", {"topic", "t", "state", "one", "exectime", "5"});
  put("negative", {"topic", "t", "state", "-1", "exectime", "5"});
  put("over", {"topic", "t", "state", "3"});
  put("huge", {"topic", "t", "state", "99999999999999999999"});
  put("no topic", {"state", "1", "exectime", "5"});
  put("no time", {"topic", "t", "state", "1"});
  put("early", {"topic", "t", "state", "1", "exectime", "-5"});
  put("score", {"topic", "t"});
  zadd("dqbucket", "score", "inf");
  zadd("dqbucket", "job without a hash", "5");
  redis_.keys["dqjobs:other"] = {"hash", {"jobid", "somebody", "topic", "t", "state", "1", "exectime", "5"}};
  redis_.keys["dqjobs:\xff\n"] = {"hash", {"topic", "t", "state", "1"}};
  text("dqjobs:text", "not a hash");
  redis_.keys["dqjobs:empty"] = {"hash", {}};

  ASSERT_TRUE(read("DelayQ").ok());
  ASSERT_THAT(found_.jobs, ElementsAre(Pair("good", testing::_)));
  const SeedJob& good = found_.jobs.begin()->second;
  EXPECT_EQ(good.attempts, 0);
  EXPECT_EQ(good.lease, "");
  EXPECT_FALSE(good.pushed.has_value());
  EXPECT_EQ(found_.overs, 1);
  EXPECT_EQ(found_.problems["dqjobs:score"], "its score is not a time");
  EXPECT_EQ(found_.problems["dqjobs:other"], "the job has another id");
  for (const char* id : {"no state", "state", "negative", "huge"})
    EXPECT_EQ(found_.problems[std::string("dqjobs:") + id], "its state is not a number");
  for (const char* id : {"no time", "early"})
    EXPECT_EQ(found_.problems[std::string("dqjobs:") + id], "its exectime is not a time");
}

TEST_F(Hostile, ABucketOfAnotherTypeEndsItByName) {
  redis_.keys["dqjobs:1"] = {"hash", {"jobid", "1", "topic", "t", "state", "0"}};
  text("dqbucket", "not a zset");
  EXPECT_THAT(read("DelayQ").error().detail, HasSubstr("ZSCORE \"dqbucket\": WRONGTYPE"));
  EXPECT_THAT(found_.jobs, IsEmpty());
}

// ---- the library delayq

TEST_F(Hostile, LibraryJobsThatAreNone) {
  const auto put = [this](const std::string& id, const std::string& json) {
    add("hash", "delayq:jp:t", id, json);
  };
  put("good", R"({"Topic":"t","Boday":"aGk="})");
  put("plain", R"({"body":"not base64!"})");
  put("no body", "{}");
  put("cut", R"({"Topic":"t",)");
  put("array", "[]");
  put("deep", std::string(5'000, '{'));
  put("bytes", "\xff\xfe\x00");
  put("early", R"({"Delay":-7})");
  put("far", R"({"Delay":9223372036854775807})");
  put("huge", R"({"Timeout":9223372036854775807,"Retry":9223372036854775807,"Delay":99999999999999999999})");
  put("negative", R"({"Timeout":-9223372036854775808,"Retry":-1})");
  put("types", R"({"Timeout":[1],"Retry":{},"Delay":"soon","Boday":7})");
  put("never", "{}");
  zadd("delayq:dq:t", "never", "inf");
  zadd("delayq:dq:t", "not in the pool", "5");
  text("delayq:jp:text", "not a hash");

  ASSERT_TRUE(read("delayq").ok());
  std::vector<std::string> ids;
  for (const auto& [id, job] : found_.jobs) ids.push_back(id);
  EXPECT_THAT(ids, UnorderedElementsAre("good", "plain", "no body", "huge", "negative", "types"));
  EXPECT_EQ(found_.jobs["good"].body, "hi");
  EXPECT_EQ(found_.jobs["plain"].body, "not base64!");
  EXPECT_EQ(found_.jobs["huge"].lease, "86400s");
  EXPECT_EQ(found_.jobs["huge"].max_attempts, Limits::kMaxAttempts);
  EXPECT_EQ(found_.jobs["negative"].lease, "");
  EXPECT_EQ(found_.jobs["negative"].max_attempts, 0);
  EXPECT_THAT(found_.problems, testing::SizeIs(7));
  EXPECT_EQ(found_.problems["delayq:jp:t never"], "its score is not a time");
  EXPECT_EQ(found_.problems["delayq:jp:t early"], "its delay is not a time");
}

TEST_F(Hostile, ATopicWithABrokenDelayQueueDoesNotHoldUpTheOthers) {
  add("hash", "delayq:jp:a", "1", "{}");
  text("delayq:dq:a", "not a zset");
  add("hash", "delayq:jp:b", "2", "{}");
  ASSERT_TRUE(read("delayq").ok());
  EXPECT_THAT(found_.jobs, ElementsAre(Pair("2", testing::_)));
  EXPECT_THAT(found_.problems["delayq:jp:a 1"], HasSubstr("not a sorted set"));
}

// ---- go-delay-queue; its MessagePack is packed_job_test's

TEST_F(Hostile, GoDelayQueueIdsThatLeadNowhere) {
  zadd("dq_bucket_1", "nothing", "5");
  zadd("dq_bucket_1", "never", "inf");
  zadd("dq_bucket_1", "bytes", "5");
  text("delay_job:bytes", "\xff");
  redis_.keys["delay_job:hash"] = {"hash", {"a", "b"}};
  zadd("dq_bucket_1", "hash", "5");
  text("dq_bucket_2", "not a zset");
  ASSERT_TRUE(read("go-delay-queue").ok());
  EXPECT_THAT(found_.jobs, IsEmpty());
  EXPECT_EQ(found_.gones, 2);
  EXPECT_EQ(found_.problems["dq_bucket_1 never"], "its score is not a time");
  EXPECT_EQ(found_.problems["dq_bucket_1 bytes"], "the job is not a map of MessagePack");
  EXPECT_THAT(layout_of("go-delay-queue", {2})->read(redis_.reader(), found_).error().detail,
              HasSubstr("ZSCAN \"dq_bucket_2\": WRONGTYPE"))
      << "one that was named is to be there";
}

/// MessagePack of a job as go-delay-queue has it, with small texts.
std::string packed(const std::string& topic, const std::string& id, uint32_t delay, uint32_t exec_time) {
  const auto text = [](const std::string& each) {
    return std::string(1, static_cast<char>(0xa0 | each.size())) + each;
  };
  const auto number = [](uint32_t value) {
    std::string bytes = "\xce";
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
    return bytes;
  };
  return "\x85" + text("1") + text(topic) + text("2") + text(id) + text("3") + number(delay) + text("4") +
         number(exec_time) + text("5") + text("body");
}

TEST_F(Hostile, GoDelayQueueJobsAreDueWhenTheyThemselvesSay) {
  text("delay_job:twice", packed("order", "twice", 600, 1'700'000'600));
  zadd("dq_bucket_1", "twice", "1700000297");  // of the first add, 303 s before
  zadd("dq_bucket_2", "twice", "1700000600");
  ASSERT_TRUE(read("go-delay-queue").ok());
  ASSERT_THAT(found_.jobs, testing::SizeIs(1));
  const SeedJob& job = found_.jobs["twice"];
  EXPECT_EQ(job.due, from_unix_ms(1'700'000'600'000));
  EXPECT_EQ(job.pushed, from_unix_ms(1'700'000'000'000));
  EXPECT_THAT(job.removal, ElementsAre(ElementsAre("ZREM", "dq_bucket_1", "twice"),
                                       ElementsAre("ZREM", "dq_bucket_2", "twice"),
                                       ElementsAre("DEL", "delay_job:twice")));
}

TEST_F(Hostile, GoDelayQueueBucketsOfEveryNameAndJobsWithoutOne) {
  text("delay_job:default", packed("order", "default", 60, 1'700'000'060));
  zadd("delay_bucket_3", "default", "1700000060");
  text("delay_job:elsewhere", packed("order", "elsewhere", 60, 1'700'000'061));
  zadd("my_bucket_1", "elsewhere", "1700000061");
  text("delay_job:fetched", packed("order", "fetched", 60, 1'699'999'000));
  ASSERT_TRUE(read("go-delay-queue").ok());
  EXPECT_THAT(found_.jobs, ElementsAre(Pair("default", testing::_), Pair("elsewhere", testing::_)));
  EXPECT_EQ(found_.overs, 1) << "its time is past, and no list has it: a consumer does";

  Collected named;
  ASSERT_TRUE(layout_of("go-delay-queue", {0, "my_bucket_%d"})->read(redis_.reader(), named).ok());
  EXPECT_THAT(named.jobs["elsewhere"].removal,
              ElementsAre(ElementsAre("ZREM", "my_bucket_1", "elsewhere"), ElementsAre("DEL", testing::_)));
}

TEST_F(Hostile, LibraryJobsOfItsOlderVersionsWithMaxRetryAndTtr) {
  add("hash", "delayQ_job_pool_space", "a",
      R"({"Topic":"space","ID":"a","Delay":1800000000,"TTR":30000,"MaxRetry":4})");
  zadd("delayQ_delay_queue_space", "a", "1800000000");
  add("hash", "delayQ_job_pool_space", "b", R"({"Topic":"space","ID":"b","TTR":1500})");
  ASSERT_TRUE(read("delayq").ok());
  ASSERT_THAT(found_.jobs, testing::SizeIs(2));
  EXPECT_EQ(found_.jobs["a"].lease, "30000ms");
  EXPECT_EQ(found_.jobs["a"].max_attempts, 5U);
  EXPECT_EQ(found_.jobs["a"].due, from_unix_ms(1'800'000'000'000));
  EXPECT_THAT(found_.jobs["a"].removal, ElementsAre(ElementsAre("ZREM", "delayQ_delay_queue_space", "a"),
                                                    ElementsAre("HDEL", "delayQ_job_pool_space", "a")));
  EXPECT_EQ(found_.jobs["b"].lease, "1500ms");
  EXPECT_THAT(found_.jobs["b"].removal, ElementsAre(ElementsAre("LREM", "delayQ_ready_queue_space", "0", "b"),
                                                    ElementsAre("HDEL", "delayQ_job_pool_space", "b")));
}

TEST_F(Hostile, CallbackJobsKeepTheirDelay) {
  text("t-1", R"({"topic":"t","id":"1","delay":90,"callback":"http://x/","body":1})");
  zadd("dqc_bucket_1", "t-1", "1800000000");
  ASSERT_TRUE(read("callback").ok());
  EXPECT_EQ(found_.jobs["1"].pushed, from_unix_ms((1'800'000'000 - 90) * int64_t{1'000}));
}

TEST_F(Hostile, KeysThatLookLikeJobsAreTold) {
  EXPECT_THAT(*look_alikes(redis_.reader()), IsEmpty());
  text("delay_job:1", "x");
  zadd("my_bucket_1", "x", "5");
  add("hash", "dqjobs:1", "a", "b");
  text("somebody's", "x");
  EXPECT_THAT(
      *look_alikes(redis_.reader()),
      UnorderedElementsAre("1 as \"delay_job:1\" look like jobs of go-delay-queue: --from go-delay-queue",
                           "1 as \"dqjobs:1\" look like jobs of DelayQ: --from DelayQ",
                           "1 as \"my_bucket_1\" look like sorted sets that may be buckets: --bucket-name "
                           "NAME_%d reads those"));
}

}  // namespace
}  // namespace delayq::cli::seeds
