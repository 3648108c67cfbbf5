// The scripts about schedules, each by itself on a real Redis: what is there afterwards, also when a key was
// lost or belongs to another program.
#include "core/moment.h"
#include "tests/support/redis_life_scripts.h"

namespace delayq::redis {
namespace {

using support::text_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

/// What turn.lua is asked.
struct Turn {
  std::string name = "s";
  std::string expected = "0";
  std::string revision = "18446744073709551615";
  int64_t next = 0;
  std::optional<std::string> definition{};
  std::string progress = "p";
  int overlap = 0;
  std::string previous_topic{};
  std::string previous{};
  std::optional<support::JobSpec> job{};
};

constexpr std::string_view kFirst = "9223372036854775809";  // as a double the same as the next
constexpr std::string_view kSecond = "9223372036854775810";
constexpr std::string_view kThird = "9223372036854775811";

class ScheduleScripts : public LifeScriptTest {
 protected:
  resp::Value turn(const std::vector<Turn>& turns, int64_t now = kNow) {
    Arguments arguments = about({}, now);
    for (const Turn& each : turns) {
      arguments.text(each.name).text(each.expected).text(each.revision).number(each.next);
      arguments.text(each.definition ? "1" : "").text(each.definition.value_or(""));
      arguments.text(each.progress).text("skipped").number(each.overlap);
      arguments.text(each.previous_topic).text(each.previous);
      if (!each.job) {
        for (int i = 0; i < 6; ++i) arguments.text({});
        continue;
      }
      const RecordPieces record = write_new_job(each.job->view(), from_unix_ms(now), arguments.storage());
      arguments.text(each.job->topic).text(each.job->id).text(record.before).text(record.after);
      arguments.moment(each.job->due).text(each.job->group);
    }
    return on_schedules(scripts::kTurn, arguments);
  }
  /// What it says of the turns.
  static std::string outcomes(const resp::Value& answer) {
    resp::Value own = answer;
    own.items.erase(own.items.begin(), own.items.begin() + 3);
    return text_of(own);
  }
  resp::Value on_schedules(const net::redis::Script& script, const Arguments& arguments) {
    return run(script, keys_.schedules(0).all(), arguments.words());
  }
  resp::Value on_schedules(const net::redis::Script& script, const std::vector<std::string>& own,
                           int64_t now = kNow) {
    Arguments arguments = about({}, now);
    for (const std::string& each : own) arguments.text(each);
    return on_schedules(script, arguments);
  }

  static Turn defined(std::string name, int64_t next) {
    return {.name = std::move(name), .revision = std::string(kFirst), .next = next, .definition = "rule"};
  }
  static std::string id(int64_t occurrence, std::string_view name = "s") {
    return occurrence_id(name, from_unix_ms(occurrence));
  }
  /// A turn from the first revision to the second with a job.
  static Turn occurs(int64_t due = kNow, std::string topic = "t") {
    Turn turn{.expected = std::string(kFirst), .revision = std::string(kSecond), .next = kNow + 60'000};
    turn.job = JobSpec(std::move(topic), id(due)).due_at(from_unix_ms(due)).or_keep().in_group("g");
    return turn;
  }

  std::string own(std::string_view name) const { return keys_.in_shard(0, name); }
  void overwrite(const std::string& name) {
    command({"DEL", name});
    command({"SET", name, "mine"});
  }
  std::vector<std::string> reported(int64_t now) {
    const resp::Value answer = on_schedules(scripts::kAlarm, {"10", "1000000", "1000"}, now);
    std::vector<std::string> names;
    for (size_t i = 3; i < answer.items.size(); i += 3) names.push_back(answer.items[i].text);
    return names;
  }
  std::optional<StoredSchedule> stored(const std::string& name = "s") {
    const resp::Value answer = on_schedules(scripts::kSchedule, {name});
    if (answer.items.empty()) return std::nullopt;
    StoredSchedule schedule;
    EXPECT_TRUE(read_turn(answer.items.at(0).text, schedule));
    schedule.name = name;
    schedule.definition = answer.items.at(1).text;
    return schedule;
  }
  /// Walks until nothing is left to do. Returns how many were put back and removed.
  std::pair<int64_t, int64_t> mend() {
    std::pair<int64_t, int64_t> done;
    std::string from = on_schedules(scripts::kMendSchedules, {"", "2", "1000"}).items.at(3).text;
    while (!from.empty()) {
      const resp::Value answer = on_schedules(scripts::kMendSchedules, {from, "2", "1000"});
      from = answer.items.at(3).text;
      done.first += answer.items.at(4).integer;
      done.second += answer.items.at(5).integer;
    }
    return done;
  }
};

// ---- turn

TEST_F(ScheduleScripts, ATurnWritesAllKeysAndTellsWhoMustKnow) {
  listen();
  EXPECT_EQ(text_of(turn({defined("s", kNow + 7)})), "[nil [] 1700000000007 0 0 0]");
  EXPECT_THAT(news(), ElementsAre("e0@me:1700000000007"));
  EXPECT_THAT(names(), UnorderedElementsAre("turn", "schedule", "schedules", "alarm", "seq"));
  EXPECT_EQ(text_of(turn({occurs()}, kNow + 7)), "[nil [t 1] 1700000060000 0 0 0]");
  EXPECT_THAT(news(), ElementsAre("r0@me:0t"));
  EXPECT_THAT(line(), ElementsAre(id(kNow)));
  EXPECT_EQ(command({"SMEMBERS", group("g")}), "[t/" + id(kNow) + "]");
  EXPECT_EQ(command({"ZRANGE", own("alarm"), "0", "-1", "WITHSCORES"}), "[s 1700000060000]");
  const StoredSchedule expected{"s", 9223372036854775810U, from_unix_ms(kNow + 60'000), "rule", "p"};
  EXPECT_EQ(stored(), expected);
}

TEST_F(ScheduleScripts, ADelayedJobOfATurnIsToldLikeAnyOther) {
  turn({defined("s", kNow)});
  listen();
  EXPECT_EQ(text_of(turn({occurs(kNow + 500)})), "[1700000000500 [] 1700000060000 0 0 0]");
  EXPECT_THAT(news(), ElementsAre("e0@me:1700000000500"));
  EXPECT_EQ(scores(Key::kNext), "[dt 1700000000500]");
}

TEST_F(ScheduleScripts, RevisionsAreComparedToTheLastDigit) {
  turn({defined("s", kNow)});
  Turn other = occurs();
  other.expected = kThird;
  EXPECT_EQ(outcomes(turn({other})), "[2 0 0]");
  EXPECT_THAT(run(scripts::kGet, "t", {id(kNow)}).items, IsEmpty());
  EXPECT_EQ(outcomes(turn({occurs(), occurs()})), "[0 0 0 2 0 0]") << "the second comes too late";
}

TEST_F(ScheduleScripts, ReplaceLeavesNoTraceOfTheJobBefore) {
  for (const int64_t due : {kNow, kNow + 500}) {
    turn({defined("s", kNow)});
    turn({occurs(due, "old")});
    Turn next = occurs(kNow + 900);
    next.expected = kSecond;
    next.revision = kThird;
    next.overlap = 2;
    next.previous_topic = "old";
    next.previous = id(due);
    EXPECT_EQ(outcomes(turn({next})), "[0 0 1]");
    EXPECT_EQ(command({"SMEMBERS", group("g")}), "[t/" + id(kNow + 900) + "]");
    EXPECT_EQ(members(Key::kTopics), "[t]");
    EXPECT_EQ(scores(Key::kNext), "[dt 1700000000900]");
    EXPECT_EQ(command({"EXISTS", key(Key::kPool, "old"), key(Key::kReady, "old"), key(Key::kDelay, "old")}),
              "0");
    run(scripts::kCancel, "t", {id(kNow + 900)});
    turn({{.expected = std::string(kThird), .revision = "0"}});
  }
  EXPECT_THAT(names(), UnorderedElementsAre("seq")) << "nothing is left of all that";
}

/// A turn of a schedule of that name whose job before is there.
class TurnsWithALargeJobBefore : public ScheduleScripts {
 protected:
  static constexpr size_t kLarge = size_t{1} << 20;

  Turn after(const std::string& name, int overlap) {
    turn({defined(name, kNow)});
    Turn next = occurs(kNow + 900);
    next.name = name;
    next.job->id = id(kNow + 900, name);
    next.overlap = overlap;
    next.previous_topic = "old";
    next.previous = id(kNow, name);
    return next;
  }
  JobSpec large(const std::string& name, int64_t due = kNow) {
    return JobSpec("old", id(kNow, name)).due_at(from_unix_ms(due)).with_body(std::string(kLarge, 'x'));
  }
  /// How often records were read.
  int64_t reads() {
    const std::string stats = server().command({"INFO", "commandstats"}).text;
    const size_t at = stats.find("cmdstat_hmget:calls=");
    return at == std::string::npos ? 0 : std::stoll(stats.substr(at + 20));
  }
  /// What a turn that skips says. It must not read the large record.
  std::string skipped(const std::string& name) {
    const Turn next = after(name, 1);
    const int64_t before = reads();
    const std::string said = outcomes(turn({next}));
    EXPECT_EQ(reads(), before) << name;
    return said;
  }
};

TEST_F(TurnsWithALargeJobBefore, ItsPlacesTellWhetherItIsLive) {
  EXPECT_EQ(skipped("none"), "[0 0 0]");
  push({large("delayed", kNow + 500)});
  EXPECT_EQ(skipped("delayed"), "[1 0 0]");
  push({large("ready")});
  EXPECT_EQ(skipped("ready"), "[1 0 0]");
  push({large("reserved")});
  take({}, kNow, "old");
  EXPECT_EQ(skipped("reserved"), "[1 0 0]");
  // Done and kept; and what is left of a job whose places were all lost.
  push({large("done")});
  take({.is_auto = true, .keep_until = kNow + 60'000, .keep_count = 10}, kNow, "old");
  EXPECT_EQ(skipped("done"), "[0 0 0]");
  push({large("lost")});
  command({"DEL", key(Key::kReady, "old")});
  EXPECT_EQ(skipped("lost"), "[0 0 0]");
}

TEST_F(TurnsWithALargeJobBefore, ThoseThatAreReplacedAreReadAFewAtATime) {
  std::vector<Turn> turns;
  for (int i = 0; i < 12; ++i) {
    const std::string name = "s" + std::to_string(i);
    push({large(name)});
    turns.push_back(after(name, 2));
  }
  size_t calls = 0;
  for (; !turns.empty() && calls < 12; ++calls) {
    const resp::Value answer = turn(turns);
    std::vector<Turn> left;
    for (size_t i = 0; i < turns.size(); ++i) {
      if (answer.items.at(3 + 3 * i).integer == 2) left.push_back(turns[i]);
    }
    ASSERT_LT(left.size(), turns.size()) << "each call does at least one";
    ASSERT_GE(left.size() + 4, turns.size()) << "four of a megabyte";
    turns = std::move(left);
  }
  EXPECT_TRUE(turns.empty());
  EXPECT_EQ(calls, 4U);
  EXPECT_EQ(command({"EXISTS", key(Key::kPool, "old")}), "0") << "all were replaced";
}

TEST_F(TurnsWithALargeJobBefore, OneThatIsLargerThanACallMayReadIsReplaced) {
  push({JobSpec("old", id(kNow)).due_at(from_unix_ms(kNow)).with_body(std::string(6 * kLarge, 'x'))});
  EXPECT_EQ(outcomes(turn({after("s", 2)})), "[0 0 1]");
}

TEST_F(ScheduleScripts, AFailedTurnIsNoHindranceToTheOthers) {
  turn({defined("s", kNow), defined("other", kNow)});
  overwrite(key(Key::kReady));
  Turn other = occurs(kNow, "u");
  other.name = "other";
  other.job->id = id(kNow, "other");
  const resp::Value answer = turn({occurs(), other});
  EXPECT_EQ(answer.items.at(3).integer, -1);
  EXPECT_THAT(answer.items.at(4).text, HasSubstr("WRONGTYPE"));
  EXPECT_EQ(answer.items.at(6).integer, 0);
  EXPECT_EQ(stored()->revision, 9223372036854775809U);
  EXPECT_EQ(stored("other")->revision, 9223372036854775810U);
  EXPECT_THAT(line(Key::kReady, "u"), ElementsAre(id(kNow, "other")));
}

class DamageToATurn : public ScheduleScripts, public testing::WithParamInterface<const char*> {};

TEST_P(DamageToATurn, LeavesScheduleAndJobsAsTheyWere) {
  for (const int64_t due : {kNow, kNow + 500}) {
    turn({defined("s", kNow)});
    turn({occurs(due, "old")});
    const std::optional<StoredSchedule> before = stored();
    const std::string damaged = own(GetParam());
    command({"COPY", damaged, damaged + "-away"});
    overwrite(damaged);
    Turn next = occurs(kNow + 900);
    next.expected = kSecond;
    next.revision = kThird;
    next.overlap = 2;
    next.previous_topic = "old";
    next.previous = id(due);
    try {
      EXPECT_THAT(outcomes(turn({next})), HasSubstr("-1 "));
    } catch (const std::runtime_error&) {
      // A key that every turn needs.
    }
    command({"DEL", damaged});
    command({"COPY", damaged + "-away", damaged});
    command({"DEL", damaged + "-away"});
    EXPECT_EQ(stored(), before);
    EXPECT_THAT(run(scripts::kGet, "old", {id(due)}).items, testing::SizeIs(2)) << "not cancelled";
    EXPECT_THAT(run(scripts::kGet, "t", {id(kNow + 900)}).items, IsEmpty()) << "not pushed";
    EXPECT_EQ(mend(), (std::pair<int64_t, int64_t>{0, 0}));
    EXPECT_EQ(outcomes(turn({next})), "[0 0 1]") << "and now it happens";
    run(scripts::kCancel, "t", {id(kNow + 900)});
    turn({{.expected = std::string(kThird), .revision = "0"}});
  }
}

INSTANTIATE_TEST_SUITE_P(Keys, DamageToATurn,
                         testing::Values("turn", "schedule", "schedules", "alarm", "next", "topics", "seq",
                                         "job:t", "delay:t", "ready:t", "kept:t", "done:t", "dead:t",
                                         "job:old", "delay:old", "ready:old", "group:g"));

TEST_F(ScheduleScripts, AFullMemoryRefusesJobsAndDefinitionsAndLetsSchedulesBePaused) {
  turn({defined("s", kNow)});
  server().command({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_THROW(turn({occurs()}), std::runtime_error);
  EXPECT_THROW(turn({defined("new", kNow)}), std::runtime_error);
  EXPECT_THAT(reported(kNow), ElementsAre("s"));
  const std::string paused =
      outcomes(turn({{.expected = std::string(kFirst), .revision = std::string(kSecond), .next = kNow + 9}}));
  const std::string removed = outcomes(turn({{.expected = std::string(kSecond), .revision = "0"}}));
  server().command({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(paused, "[0 0 0]");
  EXPECT_EQ(removed, "[0 0 0]");
  EXPECT_THAT(names(), UnorderedElementsAre("seq"));
}

// ---- alarm

TEST_F(ScheduleScripts, AnAlarmReportsWhatIsDueAndRemindsOfIt) {
  turn({defined("a", kNow + 1), defined("b", kNow + 2), defined("c", kNow + 3)});
  listen();
  EXPECT_THAT(reported(kNow), IsEmpty());
  EXPECT_THAT(reported(kNow + 2), ElementsAre("a", "b"));
  EXPECT_EQ(command({"ZRANGE", own("alarm"), "0", "-1", "WITHSCORES"}),
            "[c 1700000000003 a 1700000001002 b 1700000001002]");
  EXPECT_THAT(reported(kNow + 2), IsEmpty());
  EXPECT_THAT(reported(kNow + 1'002), ElementsAre("c", "a", "b"));
  EXPECT_THAT(news(), IsEmpty()) << "later is no news";
}

TEST_F(ScheduleScripts, AnAlarmIsBounded) {
  turn({defined("a", kNow), defined("b", kNow), defined("c", kNow)});
  EXPECT_EQ(on_schedules(scripts::kAlarm, {"2", "1000000", "1000"}).items.size(), 3U + 2 * 3);
  EXPECT_THAT(reported(kNow), ElementsAre("c"));
  Turn large = defined("large", kNow);
  large.definition = std::string(100'000, 'x');
  Turn huge = large;
  huge.name = "huge";
  turn({large, huge});
  EXPECT_EQ(on_schedules(scripts::kAlarm, {"10", "100000", "1000"}).items.size(), 3U + 3);
}

// ---- schedules

TEST_F(ScheduleScripts, APageSaysWhereToGoOn) {
  turn({defined("a", kNow), defined("b", kNow), defined("c", kNow)});
  const auto page = [this](const std::string& after, const std::string& most, const std::string& bytes) {
    const resp::Value answer = on_schedules(scripts::kSchedules, {after, most, bytes});
    std::string said = answer.items.at(0).text + ":";
    for (size_t i = 1; i < answer.items.size(); i += 3) said += " " + answer.items[i].text;
    return said;
  };
  EXPECT_EQ(page("", "2", "1000"), "b: a b");
  EXPECT_EQ(page("b", "2", "1000"), ": c");
  EXPECT_EQ(page("", "3", "1000"), ": a b c");
  EXPECT_EQ(page("", "3", "1"), "a: a");
  EXPECT_EQ(page("c", "3", "1"), ":");
  command({"HDEL", own("turn"), "b"});
  EXPECT_EQ(page("", "2", "1000"), "b: a") << "what is left of one that is gone is none";
}

// ---- lost keys

TEST_F(ScheduleScripts, NothingIsMendedWhereAllIsThere) {
  EXPECT_EQ(on_schedules(scripts::kMendSchedules, {"", "2", "1000"}).items.at(3).text, "");
  turn({defined("a", kNow), defined("b", int64_t{9'007'199'254'740'991})});
  EXPECT_EQ(on_schedules(scripts::kMendSchedules, {"", "2", "1000"}).items.at(3).text, "");
}

TEST_F(ScheduleScripts, LostAlarmsAndNamesArePutBack) {
  std::vector<Turn> turns;
  for (int i = 0; i < 20; ++i) turns.push_back(defined(std::to_string(i), kNow + i));
  for (const auto* lost : {"alarm", "schedules"}) {
    turn(turns);
    const std::string before = command({"ZRANGE", own(lost), "0", "-1", "WITHSCORES"});
    command({"DEL", own(lost)});
    listen();
    EXPECT_EQ(mend(), (std::pair<int64_t, int64_t>{20, 0})) << lost;
    EXPECT_EQ(command({"ZRANGE", own(lost), "0", "-1", "WITHSCORES"}), before);
  }
  EXPECT_THAT(reported(kNow + 3), ElementsAre("0", "1", "2", "3"));
}

TEST_F(ScheduleScripts, WhatIsLeftOfALostScheduleIsRemoved) {
  for (const auto* lost : {"turn", "schedule"}) {
    turn({defined("a", kNow), defined("b", kNow)});
    command({"DEL", own(lost)});
    EXPECT_EQ(stored("a"), std::nullopt);
    EXPECT_EQ(outcomes(turn({defined("a", kNow + 5)})), "[0 0 0]") << "another may have its name";
    EXPECT_EQ(mend(), (std::pair<int64_t, int64_t>{0, 1}));
    EXPECT_EQ(mend(), (std::pair<int64_t, int64_t>{0, 0}));
    EXPECT_EQ(command({"ZRANGE", own("alarm"), "0", "-1", "WITHSCORES"}), "[a 1700000000005]");
    EXPECT_EQ(command({"ZRANGE", own("schedules"), "0", "-1"}), "[a]");
    turn({{.name = "a", .expected = std::string(kFirst), .revision = "0"}});
  }
}

TEST_F(ScheduleScripts, AnAlarmOfALostScheduleIsNotReported) {
  turn({defined("a", kNow), defined("b", kNow)});
  command({"HDEL", own("schedule"), "a"});
  EXPECT_THAT(reported(kNow), ElementsAre("b"));
  EXPECT_EQ(command({"HKEYS", own("turn")}), "[b]");
  EXPECT_EQ(command({"ZRANGE", own("schedules"), "0", "-1"}), "[b]");
}

}  // namespace
}  // namespace delayq::redis
