// The scripts that read or change many jobs, each one alone on a real Redis: checks replies, and what is
// in Redis afterwards.
#include <map>

#include "tests/support/redis_life_scripts.h"

namespace delayq::redis {
namespace {

using support::text_of;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::string_view kEnough = "1000000";

std::vector<std::string> hostile_names() {
  return {"a b", "ünï/cödé", "colon:and{tag}", std::string("\0\r\n", 3), std::string(255, '\xff')};
}

class LookScripts : public LifeScriptTest {
 protected:
  /// Takes the one job of the topic.
  void reserve(std::string_view topic) {
    const resp::Value taken = take({}, kNow, topic);
    ASSERT_EQ(taken.items.size(), 4U);
  }

  /// The ids in the reply of a listing; place() returns where the next page starts.
  static std::vector<std::string> ids(const resp::Value& page) {
    std::vector<std::string> ids;
    for (size_t i = 3; i < page.items.size(); i += 2) ids.push_back(page.items[i].text);
    return ids;
  }
  static std::vector<std::string> place(const resp::Value& page) {
    std::vector<std::string> place;
    for (const resp::Value& word : page.items[2].items) place.push_back(text_of(word));
    place.resize(3);
    return place;
  }
  resp::Value list(JobState state, const std::string& most, std::vector<std::string> from = {"", "", ""},
                   const std::string& prefix = {}, const std::string& part = {},
                   const std::string& looks = "1000", const std::string& bodies = "1") {
    std::vector<std::string> own{
        std::to_string(static_cast<int>(state)), most, bodies, prefix, part, looks, std::string(kEnough)};
    own.insert(own.end(), from.begin(), from.end());
    return run(scripts::kList, "t", own);
  }
};

TEST_F(LookScripts, RestorePutsEachStateInItsPlace) {
  EXPECT_EQ(text_of(store(job("later", JobState::kDelayed))), "[1700000000500 0 0 0 1700000000500]");
  EXPECT_EQ(text_of(store(job("now", JobState::kReserved, kNow))), "[nil 1 0 1 1700000000000]");
  EXPECT_EQ(text_of(store(job("done", JobState::kDone))), "[1700000000500 0 0 3 1700000000500]");
  EXPECT_EQ(text_of(store(job("dead", JobState::kDead))), "[nil 0 0 4 1700000000500]");
  EXPECT_EQ(command({"HLEN", key(Key::kPool)}), "4");
  EXPECT_EQ(command({"ZSCORE", key(Key::kDelay), "later"}), "1700000000500");
  EXPECT_EQ(command({"ZCARD", key(Key::kReady)}), "1");
  EXPECT_EQ(command({"ZRANGE", key(Key::kDone), "0", "-1"}), "[done]");
  EXPECT_EQ(command({"ZRANGE", key(Key::kDead), "0", "-1"}), "[dead]");
  EXPECT_EQ(command({"ZRANGE", key(Key::kKept), "0", "-1", "WITHSCORES"}),
            "[dead 1700000001000 done 1700000001000]");
  EXPECT_EQ(command({"SCARD", group("g")}), "2") << "the live ones";
  EXPECT_EQ(command({"ZRANGE", key(Key::kTopics), "0", "-1"}), "[t]");
}

TEST_F(LookScripts, RestoreLooksAtWhatIsThere) {
  store(job("a", JobState::kDead));
  EXPECT_EQ(text_of(store(job("a", JobState::kDelayed), OnConflict::kReject)), "[nil 0 3 4 1700000000500]");
  EXPECT_EQ(text_of(store(job("a", JobState::kDelayed, kNow + 9), OnConflict::kKeep)),
            "[nil 0 2 4 1700000000500]");
  EXPECT_EQ(text_of(store(job("a", JobState::kDelayed, kNow + 9), OnConflict::kReplace)),
            "[1700000000009 0 1 0 1700000000009]");
  EXPECT_EQ(command({"ZCARD", key(Key::kDead)}), "0");
  EXPECT_EQ(command({"ZCARD", key(Key::kKept)}), "0");
  EXPECT_EQ(command({"HLEN", key(Key::kPool)}), "1");
}

TEST_F(LookScripts, HostileNamesComeBackAsTheyWere) {
  for (const std::string& id : hostile_names()) {
    for (const JobState state : {JobState::kDelayed, JobState::kReady, JobState::kDone, JobState::kDead}) {
      Job hostile = job(id, state, state == JobState::kReady ? kNow : kNow + 500);
      hostile.group = id;
      store(hostile, OnConflict::kReplace);
      const resp::Value found = run(scripts::kGet, "t", {id});
      ASSERT_EQ(found.items.size(), 2U);
      EXPECT_EQ(found.items[0].integer, static_cast<int64_t>(state));
      const std::optional<Record> record = read_record(found.items[1].text);
      ASSERT_TRUE(record);
      EXPECT_EQ(record->body, kBody);
      EXPECT_EQ(record->group, id);
      EXPECT_EQ(ids(list(state, "10")), std::vector{id});
      EXPECT_EQ(text_of(run_over(scripts::kLocate, {id, "", "10"})), is_live(state) ? "[t]" : "[]");
      EXPECT_EQ(cancelled_by(run_over(scripts::kCancelGroup, {id, "10", std::string(kEnough), "0", "*"})),
                is_live(state) ? 1 : 0);
      EXPECT_EQ(
          run(scripts::kPurge, "t", {std::to_string(static_cast<int>(state)), "10", std::string(kEnough)})
              .items[2]
              .integer,
          is_live(state) ? 0 : 1);
    }
  }
  EXPECT_THAT(names(), UnorderedElementsAre("seq", "next")) << "nothing else is left behind";
}

TEST_F(LookScripts, TopicsWithColonsAreNotMixedUp) {
  for (const char* topic : {"t", "t:t", "callback", "t:callback", "заказы"}) {
    Job each = job("a", JobState::kReady, kNow);
    each.topic = topic;
    each.body = topic;
    store(each);
  }
  for (const char* topic : {"t", "t:t", "callback", "t:callback", "заказы"}) {
    EXPECT_EQ(read_record(run(scripts::kGet, topic, {"a"}).items[1].text)->body, topic);
    EXPECT_EQ(run(scripts::kCounts, topic, {"10"}).items[3].integer, 1);
  }
}

TEST_F(LookScripts, GetFindsNothingWhereRetentionHasEnded) {
  EXPECT_EQ(text_of(run(scripts::kGet, "t", {"nobody"})), "[]");
  store(job("done", JobState::kDone));
  EXPECT_EQ(run(scripts::kGet, "t", {"done"}, kNow + 999).items.size(), 2U);
  EXPECT_EQ(run(scripts::kGet, "t", {"done"}, kNow + 1'000).items.size(), 0U);
  store(job("late", JobState::kDelayed));
  EXPECT_EQ(run(scripts::kGet, "t", {"late"}, kNow + 499).items[0].integer, 0);
  EXPECT_EQ(run(scripts::kGet, "t", {"late"}, kNow + 500).items[0].integer, 1)
      << "due, though nobody has moved it yet";
}

TEST_F(LookScripts, RedriveMovesTheDeadOnly) {
  store(job("dead", JobState::kDead));
  store(job("done", JobState::kDone));
  EXPECT_EQ(text_of(run(scripts::kRedrive, "t", {"dead", "done", "nobody", "dead"})), "[nil 1 1 0 0 0]");
  EXPECT_EQ(command({"ZCARD", key(Key::kReady)}), "1");
  EXPECT_EQ(command({"SMEMBERS", group("g")}), "[t/dead]");
  EXPECT_EQ(command({"ZRANGE", key(Key::kKept), "0", "-1"}), "[done]");
  EXPECT_EQ(read_record(run(scripts::kGet, "t", {"dead"}).items[1].text)->attempts, 0U);
}

TEST_F(LookScripts, RedriveDoesTheFirstFewOfLargeJobs) {
  const std::string body(size_t{1} << 20, 'x');
  for (const char* id : {"1", "2", "3", "4", "5", "6"}) {
    Job dead = job(id, JobState::kDead);
    dead.body = body;
    store(dead);
  }
  EXPECT_EQ(text_of(run(scripts::kRedrive, "t", {"1", "2", "3", "4", "5", "6"})), "[nil 1 1 1 1 1]");
  EXPECT_EQ(command({"ZRANGE", key(Key::kDead), "0", "-1"}), "[5 6]");
}

TEST_F(LookScripts, RedriveOldestWakesNobodyWhoseTimeIsOver) {
  for (int i = 0; i < 1'002; ++i)
    store(job("old" + std::to_string(i), JobState::kDead), OnConflict::kReject, 2'000);
  Job kept = job("kept", JobState::kDead);
  kept.until = from_unix_ms(kNow + 9'000);
  store(kept, OnConflict::kReject, 2'000);
  EXPECT_EQ(text_of(run(scripts::kRedriveOldest, "t", {"9", "100000"}, kNow + 1'000)),
            "[1700000001000 1 1 0]");
  EXPECT_EQ(command({"HKEYS", key(Key::kPool)}), "[kept]") << "who is past its retention is gone";
}

TEST_F(LookScripts, RedriveOldestIsBoundedByNumberAndBytes) {
  for (const char* id : {"3", "1", "2"}) store(job(id, JobState::kDead));
  EXPECT_EQ(text_of(run(scripts::kRedriveOldest, "t", {"1", "1000"})), "[nil 1 1 1]");
  EXPECT_EQ(command({"ZRANGE", key(Key::kDead), "0", "-1"}), "[1 2]");
  EXPECT_EQ(text_of(run(scripts::kRedriveOldest, "t", {"9", "1"})), "[nil 1 1 1]")
      << "one is more than a byte";
  EXPECT_EQ(text_of(run(scripts::kRedriveOldest, "t", {"9", "1000"})), "[nil 1 1 0]");
  EXPECT_EQ(text_of(run(scripts::kRedriveOldest, "t", {"9", "1000"})), "[nil 0 0 0]");
}

TEST_F(LookScripts, PurgeTakesOneStateAndLeavesNothingBehind) {
  store(job("reserved", JobState::kReady, kNow));
  reserve("t");
  store(job("delayed", JobState::kDelayed));
  store(job("ready", JobState::kReady, kNow));
  store(job("done", JobState::kDone));
  store(job("dead", JobState::kDead));
  for (int state = 0; state < 5; ++state) {
    const resp::Value purged = run(scripts::kPurge, "t", {std::to_string(state), "10", std::string(kEnough)});
    EXPECT_EQ(purged.items[2].integer, 1) << "state " << state;
    EXPECT_EQ(purged.items[3].integer, 0);
    EXPECT_EQ(command({"HLEN", key(Key::kPool)}), std::to_string(4 - state));
  }
  EXPECT_THAT(names(), UnorderedElementsAre("seq", "next"));
}

TEST_F(LookScripts, PurgeOfReadyJobsMeetsThoseThatAreNotYetInLine) {
  std::vector<JobSpec> jobs;
  for (int i = 10; i < 50; ++i)
    jobs.push_back(spec(std::to_string(i), kNow + 1).with_body(std::string(300'000, 'x')));
  push(jobs);
  const std::vector<std::string> ready{"1", "1000", std::string(kEnough)};
  int calls = 1;
  while (run(scripts::kPurge, "t", ready, kNow + 1).items.at(3).integer == 1) ++calls;
  EXPECT_GT(calls, 1) << "they are too large to be moved at once";
  EXPECT_EQ(command({"EXISTS", key(Key::kPool)}), "0");
}

TEST_F(LookScripts, PurgeIsBounded) {
  for (int i = 0; i < 5; ++i) store(job(std::to_string(i), JobState::kDelayed));
  const resp::Value first = run(scripts::kPurge, "t", {"0", "2", std::string(kEnough)});
  EXPECT_EQ(first.items[2].integer, 2);
  EXPECT_EQ(first.items[3].integer, 1);
  const resp::Value second = run(scripts::kPurge, "t", {"0", "9", "1"});
  EXPECT_EQ(second.items[2].integer, 1) << "one is more than a byte";
  EXPECT_EQ(second.items[3].integer, 1);
}

TEST_F(LookScripts, CancelGroupIsForTheTopicsThatMatch) {
  for (const char* topic : {"a", "ab", "a.b", "a.c", "b"}) {
    Job each = job("1", JobState::kDelayed);
    each.topic = topic;
    store(each);
  }
  const auto cancel = [&](std::vector<std::string> patterns) {
    std::vector<std::string> words{"g", "10", std::string(kEnough), "0"};
    words.insert(words.end(), patterns.begin(), patterns.end());
    return cancelled_by(run_over(scripts::kCancelGroup, words));
  };
  EXPECT_EQ(cancel({"c", "a.", "A*", "abc*"}), 0);
  EXPECT_EQ(cancel({"a", "a.*"}), 3);
  EXPECT_EQ(cancel({"*"}), 2);
}

TEST_F(LookScripts, CancelGroupPassesOverWhatStays) {
  for (int i = 0; i < 1'000; ++i) {
    const std::string id = std::to_string(i);
    Job each = job(id, JobState::kDelayed);
    each.topic = i % 10 == 0 ? "mine" : "theirs";
    store(each);
  }
  int64_t cancelled = 0;
  std::string cursor = "0";
  int calls = 0;
  for (; !cursor.empty() && calls < 1'000; ++calls) {
    const resp::Value answer =
        run_over(scripts::kCancelGroup, {"g", "20", std::string(kEnough), cursor, "mine"});
    cancelled += cancelled_by(answer);
    cursor = answer.items[4].text;
  }
  EXPECT_EQ(cancelled, 100);
  EXPECT_EQ(command({"SCARD", group("g")}), "900");
  EXPECT_LT(calls, 200);
}

TEST_F(LookScripts, CancelGroupMeetsEachOnce) {
  store(job("running", JobState::kReady, kNow));
  reserve("t");
  Job other = job("other", JobState::kDelayed);
  other.topic = "u:1";
  store(other);
  store(job("done", JobState::kDone));
  EXPECT_EQ(command({"SCARD", group("g")}), "2");
  const resp::Value answer = run_over(scripts::kCancelGroup, {"g", "10", std::string(kEnough), "0", "*"});
  EXPECT_EQ(text_of(answer.items[2]), "[u:1 1]") << "cancelled";
  EXPECT_EQ(answer.items[3].integer, 1) << "running";
  EXPECT_EQ(answer.items[4].text, "") << "no more";
  EXPECT_TRUE(read_record(run(scripts::kGet, "t", {"running"}).items[1].text)->cancel_requested);
  EXPECT_EQ(command({"ZRANGE", key(Key::kTopics), "0", "-1"}), "[t]");
  EXPECT_EQ(text_of(run_over(scripts::kCancelGroup, {"g", "10", std::string(kEnough), "0", "*"})),
            "[nil [] [] 0 ]");
}

TEST_F(LookScripts, CancelGroupIsBounded) {
  for (int i = 0; i < 5; ++i) store(job(std::to_string(i), JobState::kDelayed));
  EXPECT_EQ(cancelled_by(run_over(scripts::kCancelGroup, {"g", "2", std::string(kEnough), "0", "*"})), 2);
  const resp::Value second = run_over(scripts::kCancelGroup, {"g", "9", "1", "0", "*"});
  EXPECT_EQ(cancelled_by(second), 1) << "one is more than a byte";
  EXPECT_EQ(second.items[4].text, "0");
}

TEST_F(LookScripts, LocateGoesFromTopicToTopic) {
  for (const char* topic : {"a", "b", "c", "d"}) {
    Job each = job(topic == std::string_view("b") ? "other" : "x", JobState::kDelayed);
    each.topic = topic;
    store(each);
  }
  EXPECT_EQ(text_of(run_over(scripts::kLocate, {"x", "", "2"})), "[b a]");
  EXPECT_EQ(text_of(run_over(scripts::kLocate, {"x", "b", "2"})), "[d c d]");
  EXPECT_EQ(text_of(run_over(scripts::kLocate, {"x", "d", "2"})), "[]");
}

TEST_F(LookScripts, ListsInPages) {
  for (const JobState state : {JobState::kDelayed, JobState::kReady, JobState::kDone, JobState::kDead}) {
    for (int i = 0; i < 5; ++i)
      store(job(std::to_string(i), state, state == JobState::kReady ? kNow : kNow + 500),
            OnConflict::kReplace);
    std::vector<std::string> all;
    std::vector<std::string> from{"", "", ""};
    do {
      const resp::Value page = list(state, "2", from);
      EXPECT_LE(ids(page).size(), 2U);
      for (const std::string& id : ids(page)) all.push_back(id);
      from = place(page);
    } while (!from[0].empty() && all.size() < 20);
    EXPECT_THAT(all, ElementsAre("0", "1", "2", "3", "4")) << name_of(state);
  }
}

TEST_F(LookScripts, AWalkThroughManyDelayedMissesNoneThatStays) {
  constexpr int kJobs = 700;
  for (int i = 0; i < kJobs; ++i) store(job(std::to_string(i), JobState::kDelayed));
  std::map<std::string, int> times;
  std::vector<std::string> from{"", "", ""};
  int changed = 0;
  do {
    const resp::Value page = list(JobState::kDelayed, "7", from);
    for (const std::string& id : ids(page)) ++times[id];
    from = place(page);
    // First it shrinks to less than a tenth, then it grows again: the hash table of the zset is resized.
    for (int i = 0; i < 30; ++i, ++changed) {
      const std::string id = std::to_string(changed % kJobs);
      if (changed % 10 == 0) continue;
      if (changed < kJobs) run(scripts::kCancel, "t", {id});
      if (changed >= 2 * kJobs && changed < 4 * kJobs)
        store(job("new " + std::to_string(changed), JobState::kDelayed));
    }
    ASSERT_LT(changed, 100 * kJobs) << "the walk does not end";
  } while (!from[0].empty());
  for (int i = 0; i < kJobs; i += 10) EXPECT_GE(times[std::to_string(i)], 1) << i;
}

TEST_F(LookScripts, ListFiltersAndIsBounded) {
  for (int i = 0; i < 10; ++i) {
    const std::string id = "id" + std::string(1, static_cast<char>('a' + i));
    Job each = job(id, JobState::kDead);
    if (i == 7) each.outcome = "100% [odd] (pattern)";
    store(each);
  }
  EXPECT_THAT(ids(list(JobState::kDead, "9", {"", "", ""}, "idc")), ElementsAre("idc"));
  EXPECT_THAT(ids(list(JobState::kDead, "9", {"", "", ""}, "", "% [odd] (")), ElementsAre("idh"))
      << "as it is written, not as a pattern";
  const resp::Value page = list(JobState::kDead, "9", {"", "", ""}, "nobody", "", "4");
  EXPECT_THAT(ids(page), IsEmpty());
  EXPECT_NE(place(page)[0], "") << "four were looked at, and there are more";
  const resp::Value without = list(JobState::kDead, "1", {"", "", ""}, "", "", "1000", "0");
  const std::optional<Record> record = read_record(without.items.at(4).text);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->body, "");
  EXPECT_EQ(record->options, "options");
  EXPECT_EQ(record->group, "g");
}

TEST_F(LookScripts, CountsSeeWhatIsDue) {
  store(job("later", JobState::kDelayed));
  store(job("soon", JobState::kDelayed, kNow + 5));
  Job first = job("first", JobState::kDelayed, kNow + 6);
  first.priority = 1;
  first.outlet = Outlet::kCallback;
  store(first);
  EXPECT_EQ(text_of(run(scripts::kCounts, "t", {"10"})), "[nil 0 3 0 0 0 0 -1 0 0]");
  const resp::Value counts = run(scripts::kCounts, "t", {"10"}, kNow + 10);
  EXPECT_EQ(text_of(counts), "[1700000000500 3 1 2 0 0 0 1 1700000000006 0]") << "both outlets got something";
  store(job("due", JobState::kDelayed, kNow + 20));
  EXPECT_EQ(run(scripts::kCounts, "t", {"0"}, kNow + 20).items[3].integer, 3)
      << "one is ready without being moved";
}

TEST_F(LookScripts, TopicsAndSizesGoFromNameToName) {
  for (const char* topic : {"b", "a", "ä", "B"}) {
    Job each = job("x", JobState::kDelayed);
    each.topic = topic;
    store(each);
  }
  EXPECT_EQ(text_of(run_over(scripts::kTopics, {"", "3", "10"})),
            "[nil [] b B 1 0 0 0 0 -1 0 0 a 1 0 0 0 0 -1 0 0 b 1 0 0 0 0 -1 0 0]");
  EXPECT_EQ(text_of(run_over(scripts::kTopics, {"b", "3", "10"})), "[nil []  ä 1 0 0 0 0 -1 0 0]");
  EXPECT_EQ(text_of(run_over(scripts::kSizes, {"", "2"})), "[a B 1 a 1]");
  EXPECT_EQ(text_of(run_over(scripts::kSizes, {"a", "9"})), "[b 1 ä 1]");
}

TEST_F(LookScripts, ForecastsOfFewAndOfManyAgree) {
  for (int i = 0; i < 20; ++i) store(job(std::to_string(i), JobState::kDelayed, kNow + 1 + i * 10));
  const auto edges = [](int bins, int64_t from, int64_t to) {
    std::vector<std::string> words{"", "10"};
    for (int bin = 0; bin <= bins; ++bin) words.push_back(std::to_string(from + (to - from) * bin / bins));
    return words;
  };
  // Fewer jobs than bins, and more.
  const resp::Value fine = run_over(scripts::kForecast, edges(40, kNow, kNow + 200), "t");
  const resp::Value coarse = run_over(scripts::kForecast, edges(4, kNow, kNow + 200), "t");
  EXPECT_EQ(text_of(coarse), "[5 5 5 5]");
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(fine.items[i + 1].integer, i % 2 == 0 ? 1 : 0) << i;
  EXPECT_EQ(text_of(run_over(scripts::kForecast, edges(2, kNow - 100, kNow + 100))), "[0 10]")
      << "of all topics";
  EXPECT_EQ(text_of(run_over(scripts::kForecast, edges(1, kNow, kNow + 200), "nobody")), "[0]");
}

TEST_F(LookScripts, SettingsAreKeptAndTold) {
  const std::string notes = keys_.shared("settings");
  listen();
  const std::string note("\0\xff note\r\n", 9);
  ASSERT_TRUE(driver_.run(scripts::kSettings, {notes}, {"0", "t:1", channel_, "me", note}).ok());
  EXPECT_EQ(command({"HGET", notes, "t:1"}), note);
  ASSERT_TRUE(driver_.run(scripts::kSettings, {notes}, {"0", "t:1", channel_, "me", ""}).ok());
  EXPECT_EQ(command({"EXISTS", notes}), "0");
  EXPECT_THAT(news(), ElementsAre("st:1", "st:1"));
}

TEST_F(LookScripts, TopicsMoveNoMoreThanAFewMegabytesOfAllThatIsDue) {
  for (const char* topic : {"a", "b"}) {
    for (const char* id : {"1", "2", "3"}) {
      Job large = job(id, JobState::kDelayed);
      const std::string body(size_t{2} << 20, 'x');
      large.topic = topic;
      large.body = body;
      store(large);
    }
  }
  Arguments arguments = about({}, kNow + 500);
  arguments.text({}).number(10).number(100);
  const resp::Value said = run(scripts::kTopics, {}, arguments);
  EXPECT_EQ(command({"ZCARD", key(Key::kDelay, "a")}), "1") << "4 MiB were moved";
  EXPECT_EQ(command({"ZCARD", key(Key::kDelay, "b")}), "3") << "and that is enough for the call";
  EXPECT_EQ(said.items.at(5).integer, 3) << "they are ready all the same";
  EXPECT_EQ(said.items.at(14).integer, 3);
}

}  // namespace
}  // namespace delayq::redis
