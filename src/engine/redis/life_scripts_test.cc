// The scripts of push and take, and those that use ids, each one alone on a real Redis.
#include "tests/support/redis_life_scripts.h"

namespace delayq::redis {
namespace {

using support::text_of;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class LifeScripts : public LifeScriptTest {};

// ---- push

TEST_F(LifeScripts, PushPutsADelayedJobInThePoolAndTheDelayStageOnly) {
  listen();
  EXPECT_EQ(text_of(push({spec("a", kNow + 500)})), "[1700000000500 0]");
  EXPECT_THAT(names(), UnorderedElementsAre("job:t", "delay:t", "topics", "seq", "next"));
  EXPECT_EQ(scores(Key::kDelay), "[a 1700000000500]");
  EXPECT_EQ(scores(Key::kNext), "[dt 1700000000500]");
  EXPECT_EQ(members(Key::kTopics), "[t]");
  const Record record = record_of("a");
  EXPECT_EQ(record.state, JobState::kDelayed);
  EXPECT_EQ(record.body, kBody);
  EXPECT_EQ(record.attempts, 0U);
  EXPECT_EQ(record.sequence, 1U);
  EXPECT_THAT(news(), ElementsAre("e0@me:1700000000500"));
}

TEST_F(LifeScripts, PushPutsADueJobInItsLine) {
  listen();
  EXPECT_EQ(text_of(push({spec("now", kNow), spec("past", kNow - 1)})), "[nil 1]");
  EXPECT_THAT(line(), ElementsAre("past", "now")) << "by due time";
  EXPECT_EQ(text_of(push({spec("called", kNow).called_back()})), "[nil 2]");
  EXPECT_EQ(text_of(push({spec("both", kNow), spec("both, called", kNow).called_back()})), "[nil 3]");
  EXPECT_THAT(line(Key::kReadyCallback), ElementsAre("called", "both, called"));
  EXPECT_EQ(command({"EXISTS", key(Key::kDelay), key(Key::kNext)}), "0");
  EXPECT_THAT(news(), ElementsAre("r0@me:0t", "r0@me:1t")) << "only of lines that were empty";
}

TEST_F(LifeScripts, PushOrdersALineByPriorityDueTimeAndPlace) {
  push({spec("third", kNow - 5).with_priority(8), spec("fourth", kNow - 5).with_priority(8),
        spec("second", kNow - 9).with_priority(8), spec("first", kNow).with_priority(7),
        spec("last", kNow - 99).with_priority(4'000'000'000)});
  EXPECT_THAT(line(), ElementsAre("first", "second", "third", "fourth", "last"));
}

TEST_F(LifeScripts, PushTellsAnEarlierWakeUpOnly) {
  push({spec("a", kNow + 500)});
  listen();
  EXPECT_EQ(text_of(push({spec("b", kNow + 900)})), "[nil 0]");
  EXPECT_THAT(news(), IsEmpty());
  EXPECT_EQ(text_of(push({spec("c", kNow + 300), spec("d", kNow + 200)})), "[1700000000200 0]");
  EXPECT_THAT(news(), ElementsAre("e0@me:1700000000200"));
  EXPECT_EQ(scores(Key::kNext), "[dt 1700000000200]");
}

TEST_F(LifeScripts, PushSaysWhatIsInTheWay) {
  push({spec("a", kNow + 500)});
  EXPECT_EQ(said(push({spec("a", kNow + 1)})), "[0 3 0 1700000000500]") << "conflict";
  EXPECT_EQ(said(push({spec("a", kNow + 1).or_keep()})), "[0 2 0 1700000000500]");
  EXPECT_EQ(said(push({spec("a", kNow + 1)}, kNow + 500)), "[0 3 1 1700000000500]") << "it is due";
  EXPECT_EQ(scores(Key::kDelay), "[a 1700000000500]") << "nothing has changed";
  EXPECT_EQ(said(push({spec("b", kNow + 7), spec("a", kNow + 9).or_replace()})), "[1 1 0 1700000000009]");
  EXPECT_EQ(scores(Key::kDelay), "[b 1700000000007 a 1700000000009]");
  EXPECT_EQ(command({"HLEN", key(Key::kPool)}), "2");
}

TEST_F(LifeScripts, PushMeetsAJobThatRuns) {
  const std::string lease = lease_of(spec("a", kNow).in_group("g"));
  EXPECT_EQ(said(push({spec("a")})), "[0 3 2 1700000000000]");
  EXPECT_EQ(said(push({spec("a").or_keep()})), "[0 2 2 1700000000000]");
  EXPECT_EQ(said(push({spec("a").or_replace()})), "[0 1 0 1700000000500]");
  EXPECT_EQ(said(run(scripts::kExtend, "t", words_of(lease, {"1800000000000", "0"}))), "[0]")
      << "the lease has ended with it";
  EXPECT_THAT(names(), UnorderedElementsAre("job:t", "delay:t", "topics", "seq", "next"));
}

TEST_F(LifeScripts, PushTakesThePlaceOfAJobThatIsOver) {
  for (const JobState state : {JobState::kDone, JobState::kDead}) {
    store(job("a", state));
    EXPECT_EQ(said(push({spec("a", kNow + 3)})), "[]") << "created";
    EXPECT_EQ(command({"EXISTS", key(Key::kDone), key(Key::kDead), key(Key::kKept)}), "0");
    EXPECT_EQ(command({"HLEN", key(Key::kPool)}), "1");
    run(scripts::kCancel, "t", {"a"});
  }
}

TEST_F(LifeScripts, PushOfOneIdTwiceInABatchIsInOrder) {
  EXPECT_EQ(said(push({spec("a", kNow + 1), spec("a", kNow + 2)})), "[1 3 0 1700000000001]");
  EXPECT_EQ(
      said(push({spec("b", kNow + 1), spec("b", kNow + 2).or_replace(), spec("b", kNow + 3).or_keep()})),
      "[1 1 0 1700000000002 2 2 0 1700000000002]");
  EXPECT_EQ(scores(Key::kDelay), "[a 1700000000001 b 1700000000002]");
  EXPECT_EQ(said(push({spec("c", kNow).in_group("g"), spec("c", kNow + 9).or_replace()})),
            "[1 1 0 1700000000009]");
  EXPECT_THAT(line(), IsEmpty());
  EXPECT_EQ(command({"EXISTS", group("g")}), "0");
}

TEST_F(LifeScripts, PushCanAskForAnIdThatIsNowhereElse) {
  JobSpec other = spec("a", kNow + 5);
  other.topic = "u";
  push({other});
  EXPECT_EQ(said(push({spec("a").nowhere_else()})), "[0 3 0 1700000000005]");
  EXPECT_EQ(said(push({spec("a").nowhere_else().or_replace()})), "[0 3 0 1700000000005]");
  EXPECT_EQ(members(Key::kTopics), "[u]") << "a topic without a job is none";
  EXPECT_EQ(said(push({spec("b").nowhere_else(), spec("a")})), "[]");
}

TEST_F(LifeScripts, PushJoinsAndLeavesGroups) {
  push({spec("a").in_group("g"), spec("b", kNow).in_group("g"), spec("c")});
  EXPECT_EQ(command({"SCARD", group("g")}), "2");
  push({spec("a").in_group("h").or_replace()});
  EXPECT_EQ(command({"SMEMBERS", group("g")}), "[t/b]");
  EXPECT_EQ(command({"SMEMBERS", group("h")}), "[t/a]");
}

TEST_F(LifeScripts, PushOfAFullBatch) {
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 1'000; ++i) jobs.push_back(spec(std::to_string(i), i % 2 == 0 ? kNow : kNow + i));
  EXPECT_EQ(text_of(push(jobs)), "[1700000000001 1]");
  EXPECT_EQ(command({"HLEN", key(Key::kPool)}), "1000");
  EXPECT_EQ(command({"ZCARD", key(Key::kReady)}), "500");
  EXPECT_EQ(command({"ZCARD", key(Key::kDelay)}), "500");
}

// ---- take

TEST_F(LifeScripts, TakeLeasesTheFirstOfTheLine) {
  push({spec("a", kNow), spec("b", kNow), spec("c", kNow)});
  listen();
  Wish two;
  two.count = 2;
  const resp::Value taken = take(two);
  EXPECT_THAT(ids(taken), ElementsAre("a", "b"));
  EXPECT_EQ(taken.items[0].text, "1700000060000") << "when the leases end is to be looked at";
  const std::optional<Record> record = read_record(taken.items[3].text);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->state, JobState::kReserved);
  EXPECT_EQ(record->attempts, 1U);
  EXPECT_EQ(record->until, from_unix_ms(kNow + 60'000));
  EXPECT_EQ(record->body, kBody);
  EXPECT_EQ(record_of("a").lease, record->lease) << "what is handed out is what is kept";
  EXPECT_THAT(line(), ElementsAre("c"));
  EXPECT_EQ(members(Key::kHeld), "[a b]");
  EXPECT_EQ(command({"ZSCORE", key(Key::kHeld), "a"}), std::to_string(record->lease));
  EXPECT_EQ(scores(Key::kLease), "[a 1700000060000 b 1700000060000]");
  EXPECT_EQ(scores(Key::kNext), "[lt 1700000060000]");
  EXPECT_THAT(news(), ElementsAre("e0@me:1700000060000"));
}

TEST_F(LifeScripts, TakeOfAnEmptyTopicLeavesNothing) {
  EXPECT_EQ(text_of(take({})), "[nil 0]");
  Wish limited;
  limited.limit = 1;
  EXPECT_EQ(text_of(take(limited)), "[nil 0]");
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(LifeScripts, TakeIsOfOneOutlet) {
  push({spec("own", kNow), spec("called", kNow).called_back()});
  Wish callback;
  callback.outlet = 1;
  EXPECT_THAT(ids(take(callback)), ElementsAre("called"));
  EXPECT_THAT(ids(take({})), ElementsAre("own"));
}

TEST_F(LifeScripts, TakeMovesWhatIsDueFirstAndThatIsBounded) {
  for (int i = 0; i < 5; ++i) push({spec(std::to_string(i), kNow + i)}, kNow - 1);
  push({spec("urgent", kNow + 3).with_priority(0)}, kNow - 1);
  push({spec("later", kNow + 900)});
  Wish wish;
  wish.count = 1;
  wish.due_before = 2;
  EXPECT_THAT(ids(take(wish, kNow + 10)), ElementsAre("0")) << "of the first three: so many besides the one";
  EXPECT_EQ(members(Key::kDelay), "[3 urgent 4 later]");
  EXPECT_EQ(command({"ZSCORE", key(Key::kNext), "dt"}), "1700000000003");
  wish.due_before = 100;
  const resp::Value second = take(wish, kNow + 10);
  EXPECT_THAT(ids(second), ElementsAre("urgent"));
  EXPECT_EQ(second.items[1].integer, 1) << "the topic got ready jobs";
  EXPECT_EQ(command({"ZSCORE", key(Key::kNext), "dt"}), "1700000000900");
}

TEST_F(LifeScripts, TakeDoesNotTakeBeforeTheTime) {
  push({spec("a", kNow + 1)});
  EXPECT_THAT(ids(take({}, kNow)), IsEmpty());
  EXPECT_THAT(ids(take({}, kNow + 1)), ElementsAre("a"));
}

TEST_F(LifeScripts, TakeStopsAtTheLimitAndRemembersIt) {
  push({spec("a", kNow), spec("b", kNow), spec("c", kNow)});
  Wish wish;
  wish.limit = 2;
  const resp::Value first = take(wish);
  EXPECT_THAT(ids(first), ElementsAre("a", "b"));
  EXPECT_EQ(command({"EXISTS", key(Key::kFull)}), "1");
  EXPECT_THAT(ids(take(wish)), IsEmpty());
  listen();
  const std::string lease = std::to_string(read_record(first.items[3].text)->lease);
  EXPECT_EQ(text_of(ack({lease})), "[nil 1 0]") << "there is room";
  EXPECT_THAT(news(), ElementsAre("r0@me:0t"));
  EXPECT_EQ(command({"EXISTS", key(Key::kFull)}), "0");
  EXPECT_THAT(ids(take(wish)), ElementsAre("c"));
  EXPECT_EQ(command({"EXISTS", key(Key::kFull)}), "0") << "it was not held back";
}

TEST_F(LifeScripts, TakeForGoodRemembersThatOthersAreInItsWay) {
  push({spec("a", kNow), spec("b", kNow), spec("c", kNow)});
  Wish wish;
  wish.limit = 1;
  wish.is_auto = true;
  EXPECT_THAT(ids(take(wish)), ElementsAre("a"));
  EXPECT_EQ(command({"EXISTS", key(Key::kFull)}), "0") << "nobody would say that there is room: there is";
  wish.is_auto = false;
  const resp::Value held = take(wish);
  ASSERT_THAT(ids(held), ElementsAre("b"));
  command({"DEL", key(Key::kFull)});
  wish.is_auto = true;
  EXPECT_THAT(ids(take(wish)), IsEmpty());
  EXPECT_EQ(command({"EXISTS", key(Key::kFull)}), "1");
  EXPECT_EQ(ack({std::to_string(read_record(held.items[3].text)->lease)}).items[1].integer, 1);
}

TEST_F(LifeScripts, TakeForGoodForgetsOrKeeps) {
  push({spec("a", kNow).in_group("g"), spec("b", kNow), spec("c", kNow)});
  Wish wish;
  wish.is_auto = true;
  wish.count = 1;
  const resp::Value taken = take(wish);
  EXPECT_EQ(read_record(taken.items.at(3).text)->attempts, 1U);
  EXPECT_EQ(command({"HEXISTS", key(Key::kPool), "a"}), "0");
  EXPECT_EQ(command({"EXISTS", group("g"), key(Key::kHeld), key(Key::kLease)}), "0");
  wish.keep_until = kNow + 70;
  wish.keep_count = 1;
  wish.count = 2;
  EXPECT_THAT(ids(take(wish)), ElementsAre("b", "c"));
  EXPECT_EQ(members(Key::kDone), "[c]") << "the oldest makes room";
  EXPECT_EQ(scores(Key::kKept), "[c 1700000000070]");
  EXPECT_EQ(scores(Key::kNext), "[kt 1700000000070]");
  EXPECT_EQ(command({"HLEN", key(Key::kPool)}), "1");
  EXPECT_EQ(record_of("c").state, JobState::kDone);
}

TEST_F(LifeScripts, TheLastJobTakesItsTopicWithIt) {
  push({spec("a", kNow).in_group("g"), spec("b", kNow + 5)});
  Wish wish;
  wish.is_auto = true;
  take(wish);
  EXPECT_EQ(members(Key::kTopics), "[t]");
  take(wish, kNow + 5);
  EXPECT_THAT(names(), UnorderedElementsAre("seq"));
}

// ---- take, and the size of its reply

TEST_F(LifeScripts, TakeEndsWithItsBytesAndLeavesTheRestInLine) {
  const std::string body(10'000, 'x');
  std::vector<JobSpec> jobs;
  for (const char* id : {"a", "b", "c", "d", "e"}) jobs.push_back(spec(id, kNow).with_body(body));
  push(jobs);
  Wish wish;
  wish.most_bytes = 25'000;
  const resp::Value first = take(wish);
  EXPECT_THAT(ids(first), ElementsAre("a", "b", "c"));
  EXPECT_TRUE(is_cut(first));
  EXPECT_EQ(first.items.back().integer, 1);
  EXPECT_THAT(line(), ElementsAre("d", "e"));
  EXPECT_EQ(members(Key::kHeld), "[a b c]");
  EXPECT_EQ(record_of("d").attempts, 0U);
  const resp::Value second = take(wish);
  EXPECT_THAT(ids(second), ElementsAre("d", "e"));
  EXPECT_FALSE(is_cut(second)) << "the line ended it";
}

TEST_F(LifeScripts, TakeHasAtLeastOneHoweverLarge) {
  push({spec("a", kNow), spec("b", kNow), spec("c", kNow), spec("d", kNow)});
  Wish wish;
  wish.most_bytes = 1;
  EXPECT_THAT(ids(take(wish)), ElementsAre("a"));
  wish.is_auto = true;
  const resp::Value for_good = take(wish);
  EXPECT_THAT(ids(for_good), ElementsAre("b"));
  EXPECT_TRUE(is_cut(for_good));
  wish.count = 1;
  const resp::Value one = take(wish);
  EXPECT_THAT(ids(one), ElementsAre("c"));
  EXPECT_FALSE(is_cut(one)) << "that is all it was asked for";
  EXPECT_THAT(line(), ElementsAre("d"));
}

TEST_F(LifeScripts, TakeReadsSmallRecordsInAsManyStepsAsItNeeds) {
  std::vector<JobSpec> jobs;
  std::vector<std::string> expected;
  for (int i = 100; i < 160; ++i) {
    jobs.push_back(spec(std::to_string(i), kNow));
    if (i < 150) expected.push_back(std::to_string(i));
  }
  push(jobs);
  Wish wish;
  wish.count = 50;
  const resp::Value taken = take(wish);
  EXPECT_EQ(ids(taken), expected);
  EXPECT_FALSE(is_cut(taken));
  EXPECT_EQ(command({"ZCARD", key(Key::kReady)}), "10");
}

TEST_F(LifeScripts, TakePassesOverAnIdWithoutARecord) {
  push({spec("a", kNow), spec("b", kNow), spec("c", kNow)});
  command({"HDEL", key(Key::kPool), "b"});
  EXPECT_THAT(ids(take({})), ElementsAre("a", "c"));
  EXPECT_THAT(line(), IsEmpty());
}

TEST_F(LifeScripts, LargeJobsBecomeReadyAFewAtATime) {
  const std::string body(size_t{1} << 20, 'x');
  for (int i = 0; i < 10; ++i) push({spec(std::to_string(i), kNow + 5).with_body(body)});
  Wish wish;
  wish.count = 1;
  EXPECT_THAT(ids(take(wish, kNow + 5)), ElementsAre("0"));
  EXPECT_EQ(members(Key::kDelay), "[4 5 6 7 8 9]") << "4 MiB were moved";
  EXPECT_EQ(command({"ZSCORE", key(Key::kNext), "dt"}), "1700000000005") << "the driver goes on";
  EXPECT_THAT(ids(take(wish, kNow + 5)), ElementsAre("1"));
  EXPECT_EQ(members(Key::kDelay), "[8 9]");
  wish.count = 100;
  const resp::Value rest = take(wish, kNow + 5);
  EXPECT_THAT(ids(rest), ElementsAre("2", "3", "4", "5", "6", "7", "8", "9"));
}

TEST_F(LifeScripts, TakeSaysThatMoreIsDueThanItCouldMove) {
  const std::string body(size_t{1} << 20, 'x');
  for (int i = 0; i < 6; ++i) push({spec(std::to_string(i), kNow + 5).with_body(body)});
  const resp::Value first = take({}, kNow + 5);
  EXPECT_THAT(ids(first), ElementsAre("0", "1", "2", "3"));
  EXPECT_TRUE(is_cut(first)) << "the topic is not dry";
  const resp::Value second = take({}, kNow + 5);
  EXPECT_THAT(ids(second), ElementsAre("4", "5"));
  EXPECT_FALSE(is_cut(second));
}

TEST_F(LifeScripts, TakeSaysSoAlsoWhenAllThatItMovedWasForOthers) {
  const std::string body(size_t{1} << 20, 'x');
  for (int i = 0; i < 6; ++i) push({spec(std::to_string(i), kNow + 5).with_body(body).called_back()});
  push({spec("own", kNow + 5)});
  const resp::Value first = take({}, kNow + 5);
  EXPECT_THAT(ids(first), IsEmpty());
  EXPECT_TRUE(is_cut(first)) << "there may be one behind them";
  EXPECT_EQ(first.items[1].integer, 2);
  const resp::Value second = take({}, kNow + 5);
  EXPECT_THAT(ids(second), ElementsAre("own"));
  EXPECT_FALSE(is_cut(second));
}

TEST_F(LifeScripts, TakeSaysSoOfManySmallOnesToo) {
  push({spec("1", kNow + 5).called_back(), spec("2", kNow + 5).called_back(),
        spec("3", kNow + 5).called_back(), spec("own", kNow + 5)});
  Wish wish;
  wish.count = 1;
  wish.due_before = 2;
  const resp::Value first = take(wish, kNow + 5);
  EXPECT_THAT(ids(first), IsEmpty());
  EXPECT_TRUE(is_cut(first));
  wish.due_before = 0;
  const resp::Value second = take(wish, kNow + 5);
  EXPECT_THAT(ids(second), ElementsAre("own"));
  EXPECT_FALSE(is_cut(second)) << "that is all it was asked for";
  EXPECT_FALSE(is_cut(take(wish, kNow + 5))) << "nothing is due any more";
}

TEST_F(LifeScripts, TakeThatALimitHoldsBackSaysNothingOfWhatIsDue) {
  lease_of(spec("running", kNow));
  push({spec("1", kNow + 5), spec("2", kNow + 5)});
  Wish wish;
  wish.count = 1;
  wish.limit = 1;
  wish.due_before = 0;
  EXPECT_FALSE(is_cut(take(wish, kNow + 5))) << "to ask again would be in vain";
}

// ---- by id

TEST_F(LifeScripts, CancelSaysWhatItMet) {
  const std::string lease = lease_of(spec("running", kNow));
  push({spec("delayed"), spec("ready", kNow)});
  store(job("done", JobState::kDone));
  store(job("dead", JobState::kDead));
  EXPECT_EQ(
      said(run(scripts::kCancel, "t", {"delayed", "ready", "running", "done", "dead", "nobody", "delayed"})),
      "[0 0 1 2 3 4 4]")
      << "twice in a batch: once";
  EXPECT_TRUE(record_of("running").cancel_requested);
  EXPECT_EQ(said(run(scripts::kCancel, "t", {"running"})), "[1]") << "asked again it is the same";
  EXPECT_EQ(said(run(scripts::kCancel, "t", {"dead"}, kNow + 1'000)), "[4]") << "its retention has ended";
  EXPECT_EQ(said(run(scripts::kNack, "t", words_of(lease, {std::to_string(kNow), "0", "0", "again", "0"}))),
            "[2]");
  EXPECT_EQ(command({"HEXISTS", key(Key::kPool), "running"}), "0");
}

TEST_F(LifeScripts, CancelPutsOffTheWakeUpAndLeavesNothing) {
  push({spec("a", kNow + 100).in_group("g"), spec("b", kNow + 200)});
  EXPECT_EQ(text_of(run(scripts::kCancel, "t", {"a"})), "[1700000000200 0 0]");
  EXPECT_EQ(scores(Key::kNext), "[dt 1700000000200]");
  EXPECT_EQ(text_of(run(scripts::kCancel, "t", {"b"})), "[0 0]") << "nothing is to be looked at";
  EXPECT_THAT(names(), UnorderedElementsAre("seq"));
}

TEST_F(LifeScripts, RescheduleMovesWhatWaitsAndWhatDied) {
  lease_of(spec("running", kNow));
  push({spec("delayed"), spec("ready", kNow).in_group("g")});
  store(job("done", JobState::kDone));
  Job dead = job("dead", JobState::kDead);
  dead.attempts = 5;
  store(dead);
  const std::string soon = std::to_string(kNow + 50);
  listen();
  EXPECT_EQ(said(run(scripts::kReschedule, "t",
                     {"delayed", std::to_string(kNow), "ready", soon, "dead", soon, "running", soon, "done",
                      soon, "nobody", soon})),
            "[0 0 0 1 2 3]");
  EXPECT_THAT(line(), ElementsAre("delayed"));
  EXPECT_EQ(scores(Key::kDelay), "[dead 1700000000050 ready 1700000000050]");
  EXPECT_EQ(record_of("dead").attempts, 0U) << "another life";
  EXPECT_EQ(record_of("dead").until, Moment{});
  EXPECT_EQ(members(Key::kKept), "[done]");
  EXPECT_EQ(command({"SCARD", group("g")}), "2") << "who lives again is in its group again";
  EXPECT_EQ(command({"ZSCORE", key(Key::kNext), "dt"}), "1700000000050");
  EXPECT_THAT(news(), ElementsAre("e0@me:1700000000050")) << "the line was not empty";
}

TEST_F(LifeScripts, RescheduleOfOneIdTwiceInABatch) {
  push({spec("a", kNow + 5)});
  EXPECT_EQ(
      text_of(run(scripts::kReschedule, "t", {"a", std::to_string(kNow), "a", std::to_string(kNow + 80)})),
      "[1700000000080 1 0 0]");
  EXPECT_THAT(line(), IsEmpty());
  EXPECT_EQ(scores(Key::kDelay), "[a 1700000000080]");
  EXPECT_EQ(scores(Key::kNext), "[dt 1700000000080]");
}

// ---- by id, and how much one call reads

TEST_F(LifeScripts, ByIdTheFirstFewOfLargeJobsAreDone) {
  push_large("abcdef");
  const std::string soon = std::to_string(kNow + 50);
  EXPECT_EQ(said(run(scripts::kReschedule, "t",
                     {"nobody", soon, "a", soon, "b", soon, "c", soon, "d", soon, "e", soon, "f", soon})),
            "[3 0 0 0 0]")
      << "4 MiB were read";
  EXPECT_EQ(members(Key::kDelay), "[a b c d]");
  EXPECT_THAT(line(), ElementsAre("e", "f")) << "where they were";
  EXPECT_EQ(said(run(scripts::kReschedule, "t", {"e", soon, "f", soon})), "[0 0]");
  EXPECT_EQ(said(run(scripts::kCancel, "t", {"a", "b", "c", "d", "e", "f"})), "[0 0 0 0]");
  EXPECT_EQ(members(Key::kDelay), "[e f]");
  EXPECT_EQ(said(run(scripts::kCancel, "t", {"e", "f"})), "[0 0]");
  EXPECT_THAT(names(), UnorderedElementsAre("seq"));
}

}  // namespace
}  // namespace delayq::redis
