// The verbs that read: listings, counts, topics, forecast, settings.
#include <algorithm>
#include <map>
#include <numeric>

#include "core/random.h"
#include "tests/contract/engine_contract.h"

namespace delayq::contract {
namespace {

class LookingAround : public EngineContract {
 protected:
  static ListRequest list_of(JobState state, uint32_t limit = 100) {
    ListRequest request;
    request.topic = "t";
    request.state = state;
    request.limit = limit;
    return request;
  }

  static ForecastRequest forecast_of(Moment from, Moment to, uint32_t bins, std::string_view topic = {}) {
    ForecastRequest request;
    request.topic = topic;
    request.from = from;
    request.to = to;
    request.bins = bins;
    return request;
  }

  static uint64_t sum(const Forecast& forecast) {
    return std::accumulate(forecast.bins.begin(), forecast.bins.end(), uint64_t{0});
  }
};
DELAYQ_OVER_ALL_ENGINES(LookingAround);

TEST_P(LookingAround, ListsInTheOrderOfEntering) {
  engine_.push_all({JobSpec("t", "late").due_at(at(300)), JobSpec("t", "soon").due_at(at(100)),
                    JobSpec("t", "later").due_at(at(200))});
  EXPECT_THAT(engine_.ids_in("t", JobState::kDelayed), lists_delayed({"late", "soon", "later"}));
  engine_.go_to(at(150));
  engine_.tick();
  engine_.go_to(at(250));
  engine_.tick();
  EXPECT_THAT(engine_.ids_in("t", JobState::kReady), ElementsAre("soon", "later"));
  const std::vector<Taken> taken = engine_.take("t", 2);
  EXPECT_THAT(engine_.ids_in("t", JobState::kReserved), ElementsAre("soon", "later"));
  engine_.ack(taken[1]);
  engine_.ack(taken[0]);
  EXPECT_THAT(engine_.ids_in("t", JobState::kDone), ElementsAre("later", "soon"));
}

TEST_P(LookingAround, PagesOfAnySize) {
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    expected.push_back(std::to_string(i));
    engine_.push(JobSpec("t", expected.back()).due_at(at(1'000 - i)));
  }
  for (const uint32_t limit : {1U, 7U, 50U, 100U, 101U}) {
    EXPECT_THAT(ids_of(engine_.list_all(list_of(JobState::kDelayed, limit))), lists_delayed(expected))
        << "limit " << limit;
    EXPECT_LE(engine_.list(list_of(JobState::kDelayed, limit)).jobs.size(), limit);
  }
}

TEST_P(LookingAround, BodiesOnlyWhenAskedFor) {
  engine_.push(JobSpec("t", "a").due_at(at(10)).with_body("body").with_options("o").in_group("g"));
  ListRequest request = list_of(JobState::kDelayed);
  const std::vector<SeenJob> without = engine_.list_all(request);
  ASSERT_THAT(without, SizeIs(1));
  EXPECT_EQ(without[0].body, "");
  EXPECT_EQ(without[0].options, "o");
  EXPECT_EQ(without[0].group, "g");
  request.with_bodies = true;
  EXPECT_EQ(engine_.list_all(request).at(0), engine_.get("t", "a"));
}

TEST_P(LookingAround, Prefixes) {
  for (const char* id : {"order:1", "order:12", "order", "mail:1", "Order:1"}) {
    engine_.push(JobSpec("t", id).due_at(at(10)));
  }
  ListRequest request = list_of(JobState::kDelayed);
  request.id_prefix = "order:1";
  EXPECT_THAT(ids_of(engine_.list_all(request)), lists_delayed({"order:1", "order:12"}));
  request.id_prefix = "order:123";
  EXPECT_THAT(engine_.list_all(request), IsEmpty());
}

TEST_P(LookingAround, AFilteredPageIsNotLongerThanItsLimit) {
  std::vector<std::string> expected;
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 3'000; ++i) {
    jobs.push_back(JobSpec("t", (i % 3 == 0 ? "a" : "b") + std::to_string(i)).due_at(at(10)));
    if (i % 3 == 0) expected.push_back(jobs.back().id);
  }
  engine_.push_all(jobs);
  for (const uint32_t limit : {3U, 10U, 250U, 1'000U}) {
    ListRequest request = list_of(JobState::kDelayed, limit);
    request.id_prefix = "a";
    std::vector<std::string> ids;
    std::string cursor;
    for (int pages = 0; pages < 3'000; ++pages) {
      request.cursor = cursor;
      const support::SeenPage page = engine_.list(request);
      ASSERT_LE(page.jobs.size(), limit);
      for (const SeenJob& job : page.jobs) ids.push_back(job.id);
      cursor = page.cursor;
      if (cursor.empty()) break;
    }
    EXPECT_EQ(cursor, "") << "the listing ends";
    EXPECT_THAT(ids, lists_delayed(expected)) << "limit " << limit;
  }
}

TEST_P(LookingAround, DueTimesInEveryState) {
  const auto listed = [&](JobState state, DueWindow window) {
    ListRequest request = list_of(state);
    request.due = window;
    std::vector<std::string> ids = ids_of(engine_.list_all(request));
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  const auto expect_windows = [&](JobState state, int first) {
    SCOPED_TRACE(name_of(state));
    const auto id = [&](int number) { return std::to_string(first + number); };
    const auto time = [&](int number) { return at(100 * (first + number)); };
    EXPECT_THAT(listed(state, {}), ElementsAre(id(1), id(2), id(3), id(4)));
    EXPECT_THAT(listed(state, {time(2), time(4)}), ElementsAre(id(2), id(3)))
        << "the first is in, the last is not";
    EXPECT_THAT(listed(state, {.from = time(3)}), ElementsAre(id(3), id(4)));
    EXPECT_THAT(listed(state, {.before = time(2)}), ElementsAre(id(1)));
    EXPECT_THAT(listed(state, {time(1) + Millis{1}, time(2)}), IsEmpty());
    EXPECT_THAT(listed(state, {.before = time(1)}), IsEmpty());
    EXPECT_THAT(listed(state, {.from = time(4) + Millis{1}}), IsEmpty());
  };
  for (int i = 1; i <= 4; ++i) {
    for (const int first : {0, 10, 20, 30, 40})
      engine_.push(JobSpec("t", std::to_string(first + i)).due_at(at(100 * (first + i))));
  }
  engine_.go_to(at(350));
  engine_.tick();
  engine_.go_to(at(3'500));
  engine_.tick();
  std::vector<Taken> taken = engine_.take("t", 12);
  ASSERT_THAT(taken, SizeIs(12)) << "1 to 4, 11 to 14, 21 to 24";
  for (int i = 0; i < 4; ++i) engine_.ack(taken[i]);
  for (int i = 4; i < 8; ++i) engine_.bury(taken[i]);
  expect_windows(JobState::kDone, 0);
  expect_windows(JobState::kDead, 10);
  expect_windows(JobState::kReserved, 20);
  expect_windows(JobState::kReady, 30);
  expect_windows(JobState::kDelayed, 40);
}

TEST_P(LookingAround, SinceWhenALeaseIsHeld) {
  const auto held_since = [&](std::string_view id) {
    const auto found = engine_.ask<std::optional<FoundJob>>("get", [&](auto reply) {
      engine_.engine().get(engine_.now(), {"t", id}, std::move(reply));
    });
    return (*found)->job.handed_over;
  };
  const auto expect_at = [](Moment told, Moment truth) {
    EXPECT_LE(told, truth);
    EXPECT_LT(truth - told, std::chrono::seconds{1});
  };
  for (const char* id : {"a", "b", "c"}) engine_.push(JobSpec("t", id).due_at(at(0)));
  EXPECT_EQ(engine_.counts("t").oldest_lease, std::nullopt);
  EXPECT_EQ(held_since("a"), Moment{});
  engine_.go_to(at(10'500));
  const Taken first = engine_.take_one("t", std::chrono::minutes{1});
  engine_.go_to(at(20'500));
  const Taken second = engine_.take_one("t", std::chrono::minutes{1});
  expect_at(held_since("a"), at(10'500));
  expect_at(held_since("b"), at(20'500));
  expect_at(*engine_.counts("t").oldest_lease, at(10'500));

  engine_.go_to(at(40'500));
  EXPECT_TRUE(engine_.extend(first, at(400'000)));
  engine_.cancel("t", "a");
  expect_at(held_since("a"), at(10'500));  // neither a heartbeat nor a cancel begins it anew
  expect_at(*engine_.counts("t").oldest_lease, at(10'500));
  for (const SeenJob& job : engine_.list_all(list_of(JobState::kReserved))) EXPECT_NE(job.id, "c");

  engine_.ack(first);
  EXPECT_EQ(held_since("a"), Moment{});
  expect_at(*engine_.counts("t").oldest_lease, at(20'500));
  engine_.retry(second, at(41'000));
  EXPECT_EQ(held_since("b"), Moment{});
  EXPECT_EQ(engine_.counts("t").oldest_lease, std::nullopt);
  engine_.go_to(at(60'500));
  engine_.take("t", 2);
  expect_at(held_since("b"), at(60'500));
  const TopicPage page = engine_.topics({}, 10);
  ASSERT_THAT(page.topics, SizeIs(1));
  expect_at(*page.topics[0].counts.oldest_lease, at(60'500));
}

TEST_P(LookingAround, AWindowOfManyJobsIsWalkedInPagesUnderChange) {
  for (const uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::map<std::string, int> times_listed;
    std::vector<JobSpec> jobs;
    for (int i = 0; i < 2'500; ++i) {
      // Many have the same due time, and most are not in the window.
      const Moment due = at(static_cast<int64_t>(10'000 + 10 * random.below(50)));
      jobs.push_back(JobSpec("t", std::to_string(i)).due_at(due));
      if (due >= at(10'100) && due < at(10'200)) times_listed[jobs.back().id] = 0;
    }
    engine_.push_all(jobs);
    ListRequest request = list_of(JobState::kDelayed, 7);
    request.due = {at(10'100), at(10'200)};
    std::string cursor;
    int pages = 0;
    do {
      request.cursor = cursor;
      const support::SeenPage page = engine_.list(request);
      ASSERT_LE(page.jobs.size(), request.limit);
      for (const SeenJob& job : page.jobs) {
        EXPECT_TRUE(request.due.has(job.due));
        if (times_listed.contains(job.id)) ++times_listed[job.id];
      }
      cursor = page.cursor;
      // The last job of the page leaves, and another one: a job may leave before it is listed.
      for (const std::string& id : {page.jobs.empty() ? std::string("0") : page.jobs.back().id,
                                    std::to_string(random.below(2'500))}) {
        engine_.cancel("t", id);
        times_listed.erase(id);
      }
      ASSERT_LT(++pages, 5'000) << "the walk does not end";
    } while (!cursor.empty());
    for (const auto& [id, times] : times_listed) {
      EXPECT_GE(times, 1) << "job " << id;
      EXPECT_TRUE(times <= 1 || !GetParam().lists_delayed_in_order) << "job " << id;
    }
    engine_.purge("t", JobState::kDelayed);
  }
}

TEST_P(LookingAround, ACursorCanBeUsedAgain) {
  for (int i = 0; i < 9; ++i) engine_.push(JobSpec("t", std::to_string(i)).due_at(at(10)));
  ListRequest request = list_of(JobState::kDelayed, 3);
  const std::string cursor = engine_.list(request).cursor;
  request.cursor = cursor;
  const std::vector<std::string> first = ids_of(engine_.list(request).jobs);
  EXPECT_THAT(first, SizeIs(3));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ids_of(engine_.list(request).jobs), first);
}

TEST_P(LookingAround, NothingToList) {
  EXPECT_THAT(engine_.list_all(list_of(JobState::kDead)), IsEmpty());
  engine_.push(JobSpec("t", "a"));
  EXPECT_THAT(engine_.list_all(list_of(JobState::kDelayed)), IsEmpty());
  EXPECT_EQ(engine_.get("t", "b"), std::nullopt);
  EXPECT_EQ(engine_.get("u", "a"), std::nullopt);
}

TEST_P(LookingAround, AForeignCursorIsAnError) {
  for (int i = 0; i < 5; ++i) engine_.push(JobSpec("t", std::to_string(i)).due_at(at(10)));
  for (const std::string& cursor : {std::string{"?"}, std::string{"-"}, std::string{"not a cursor"},
                                    std::string(2'000, '1'), std::string("\0", 1)}) {
    ListRequest request = list_of(JobState::kDelayed);
    request.cursor = cursor;
    const Result<JobPage> answer = engine_.ask<JobPage>(
        "list", [&](auto reply) { engine_.engine().list(engine_.now(), request, std::move(reply)); });
    ASSERT_FALSE(answer.ok()) << support::brief(cursor);
    EXPECT_EQ(answer.error().code, ErrorCode::kInvalid);
  }
}

// The promise that makes cursors useful: whatever happens between the pages, a job that stays in the state is
// listed, and only once where the engine promises this.
TEST_P(LookingAround, AListingUnderChangeIsStable) {
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::map<std::string, int> times_listed;
    for (int i = 0; i < 200; ++i) {
      const std::string id = std::to_string(i);
      engine_.push(JobSpec("t", id).due_at(at(1'000 + i)));
      if (i % 2 == 0) times_listed[id] = 0;
    }
    int next_id = 200;
    ListRequest request = list_of(JobState::kDelayed, 10);
    std::string cursor;
    do {
      request.cursor = cursor;
      const support::SeenPage page = engine_.list(request);
      ASSERT_LE(page.jobs.size(), request.limit);
      for (const SeenJob& job : page.jobs) {
        if (times_listed.contains(job.id)) ++times_listed[job.id];
      }
      cursor = page.cursor;
      for (int change = 0; change < 10; ++change) {
        const std::string odd = std::to_string(random.below(100) * 2 + 1);
        switch (random.below(4)) {
          case 0:
            engine_.cancel("t", odd);
            break;
          case 1:
            engine_.reschedule("t", odd, at(0));
            break;
          case 2:
            engine_.reschedule("t", std::to_string(random.below(100) * 2), at(5'000));
            break;
          default:
            engine_.push(JobSpec("t", std::to_string(next_id++)).due_at(at(9'000)));
            break;
        }
      }
      ASSERT_LT(next_id, 5'000) << "the walk does not end";
    } while (!cursor.empty());
    for (const auto& [id, times] : times_listed) {
      EXPECT_GE(times, 1) << "job " << id;
      EXPECT_TRUE(times <= 1 || !GetParam().lists_delayed_in_order) << "job " << id;
    }
    engine_.purge("t", JobState::kDelayed);
    engine_.purge("t", JobState::kReady);
  }
}

TEST_P(LookingAround, AListingOfRunningJobsEndsUnderTheirHeartbeats) {
  for (int i = 0; i < 60; ++i) engine_.push(JobSpec("t", std::to_string(i)));
  const std::vector<Taken> taken = engine_.take("t", 60);
  ListRequest request = list_of(JobState::kReserved, 7);
  std::vector<std::string> listed;
  std::string cursor;
  do {
    request.cursor = cursor;
    const support::SeenPage page = engine_.list(request);
    for (const SeenJob& job : page.jobs) listed.push_back(job.id);
    cursor = page.cursor;
    for (const Taken& each : taken)
      EXPECT_TRUE(engine_.extend(each, engine_.now() + std::chrono::minutes{2}));
    engine_.cancel("t", "5");
  } while (!cursor.empty() && listed.size() <= 60);
  EXPECT_EQ(listed, ids_of(taken)) << "each once, in the order of hand-over";
}

TEST_P(LookingAround, TheCursorsOwnJobMayGo) {
  for (int i = 0; i < 6; ++i) engine_.push(JobSpec("t", std::to_string(i)).due_at(at(100)));
  const std::vector<std::string> all = engine_.ids_in("t", JobState::kDelayed);
  ListRequest request = list_of(JobState::kDelayed, 2);
  const support::SeenPage first = engine_.list(request);
  ASSERT_THAT(ids_of(first.jobs), ElementsAre(all.at(0), all.at(1)));
  engine_.cancel("t", all.at(1));
  engine_.cancel("t", all.at(2));
  std::vector<std::string> rest;
  for (std::string cursor = first.cursor; !cursor.empty();) {
    request.cursor = cursor;
    const support::SeenPage page = engine_.list(request);
    for (const SeenJob& job : page.jobs) rest.push_back(job.id);
    cursor = page.cursor;
  }
  EXPECT_THAT(rest, ElementsAre(all.at(3), all.at(4), all.at(5)));
}

TEST_P(LookingAround, CountsFollowEveryStep) {
  using Counts = std::array<uint64_t, kJobStateCount>;
  EXPECT_EQ(engine_.counts("t").by_state, (Counts{0, 0, 0, 0, 0}));
  engine_.push_all({JobSpec("t", "a").due_at(at(10)), JobSpec("t", "b").due_at(at(20)), JobSpec("t", "c")});
  EXPECT_EQ(engine_.counts("t").by_state, (Counts{2, 1, 0, 0, 0}));
  engine_.go_to(at(10));
  EXPECT_EQ(engine_.counts("t").by_state, (Counts{1, 2, 0, 0, 0}));
  const std::vector<Taken> taken = engine_.take("t", 2);
  EXPECT_EQ(engine_.counts("t").by_state, (Counts{1, 0, 2, 0, 0}));
  engine_.ack(taken[0]);
  engine_.bury(taken[1]);
  EXPECT_EQ(engine_.counts("t").by_state, (Counts{1, 0, 0, 1, 1}));
  engine_.push(JobSpec("u", "d").due_at(at(50)));
  EXPECT_EQ(engine_.counts("").by_state, (Counts{2, 0, 0, 1, 1})) << "all topics together";
  EXPECT_EQ(engine_.counts("").oldest_ready, std::nullopt);
  EXPECT_EQ(engine_.usage().jobs, 4U);
  EXPECT_EQ(engine_.usage().topics, 2U);
}

TEST_P(LookingAround, AThousandTopics) {
  std::vector<std::string> expected;
  std::vector<JobSpec> jobs;
  for (int i = 0; i < 1'000; ++i) {
    expected.push_back("topic " + std::to_string(i));
    jobs.push_back(JobSpec(expected.back(), "a").due_at(at(i)));
    jobs.push_back(JobSpec(expected.back(), "b").due_at(at(5'000)));
  }
  engine_.push_all(jobs);
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(engine_.topic_names(37), expected);
  EXPECT_EQ(engine_.topic_names(1'000), expected);
  engine_.go_to(at(999));
  engine_.tick();
  const TopicPage page = engine_.topics("topic 41", 1);
  ASSERT_THAT(page.topics, SizeIs(1));
  EXPECT_EQ(page.topics[0].topic, "topic 410");
  EXPECT_EQ(page.topics[0].counts.of(JobState::kReady), 1U);
  EXPECT_EQ(page.topics[0].counts.of(JobState::kDelayed), 1U);
  EXPECT_EQ(page.topics[0].counts.oldest_ready, at(410));
  EXPECT_EQ(engine_.ready_news().size(), 1'000U);
  for (const std::string& topic : expected) EXPECT_THAT(engine_.take(topic, 9), SizeIs(1));
}

TEST_P(LookingAround, EmptyTopicsVanish) {
  engine_.push_all(
      {JobSpec("a", "x"), JobSpec("b", "x"), JobSpec("c", "x"), JobSpec("d", "x").due_at(at(10))});
  engine_.ack(engine_.take_one("a"), kKeepNone);
  engine_.ack(engine_.take_one("b"), kKeepAll);
  engine_.cancel("d", "x");
  EXPECT_THAT(engine_.topic_names(), ElementsAre("b", "c"));
  EXPECT_EQ(engine_.usage().topics, 2U);
}

TEST_P(LookingAround, TopicNamesAreOrderedBytewise) {
  for (const char* topic : {"b", "a", "B", "aa", "ä", "a:1"}) engine_.push(JobSpec(topic, "x"));
  EXPECT_THAT(engine_.topic_names(2), ElementsAre("B", "a", "a:1", "aa", "b", "ä"));
}

TEST_P(LookingAround, ForecastSumsUp) {
  for (int i = 0; i < 1'000; ++i) {
    engine_.push(JobSpec(i % 2 == 0 ? "t" : "u", std::to_string(i)).due_at(at(1 + i * 977)));
  }
  engine_.push(JobSpec("t", "ready"));
  const Moment end = at(2'000'000);
  EXPECT_EQ(sum(engine_.forecast(forecast_of(at(0), end, 1))), 1'000U);
  EXPECT_EQ(sum(engine_.forecast(forecast_of(at(0), end, 60))), 1'000U);
  EXPECT_EQ(sum(engine_.forecast(forecast_of(at(0), end, 7, "t"))), 500U);
  EXPECT_EQ(sum(engine_.forecast(forecast_of(at(0), end, 7, "nobody"))), 0U);
}

TEST_P(LookingAround, ForecastBinsAreRightWithinTheResolution) {
  std::vector<Moment> dues;
  Random random(5);
  for (int i = 0; i < 500; ++i) {
    dues.push_back(at(1 + static_cast<int64_t>(random.below(100'000))));
    engine_.push(JobSpec("t", std::to_string(i)).due_at(dues.back()));
  }
  const Forecast forecast = engine_.forecast(forecast_of(at(0), at(100'000), 10));
  ASSERT_THAT(forecast.bins, SizeIs(10));
  ASSERT_GE(forecast.resolution, Millis{1});
  const auto before = [&](Moment edge) {
    return static_cast<uint64_t>(
        std::count_if(dues.begin(), dues.end(), [&](Moment due) { return due < edge; }));
  };
  uint64_t so_far = 0;
  for (size_t bin = 0; bin < forecast.bins.size(); ++bin) {
    so_far += forecast.bins[bin];
    const Moment edge = at(static_cast<int64_t>(bin + 1) * 10'000);
    EXPECT_GE(so_far, before(edge - (forecast.resolution - Millis{1}))) << "bin " << bin;
    EXPECT_LE(so_far, before(edge + (forecast.resolution - Millis{1}))) << "bin " << bin;
  }
}

TEST_P(LookingAround, ForecastKnowsDelayedJobsOnly) {
  reserve("reserved", Millis{50});
  finish("done", {at(50), 10});
  bury("dead", "x", {at(50), 10});
  engine_.push(JobSpec("t", "cancelled").due_at(at(50)));
  engine_.cancel("t", "cancelled");
  engine_.push(JobSpec("t", "moved").due_at(at(50)));
  engine_.reschedule("t", "moved", at(50'000'000));
  engine_.push(JobSpec("t", "waits").due_at(at(60)));
  EXPECT_EQ(sum(engine_.forecast(forecast_of(at(0), at(10'000'000), 5))), 1U);
}

TEST_P(LookingAround, ForecastOfAnEmptyRange) {
  engine_.push(JobSpec("t", "a").due_at(at(10)));
  EXPECT_EQ(sum(engine_.forecast(forecast_of(at(10), at(10), 3))), 0U);
  EXPECT_THAT(engine_.forecast(forecast_of(at(20), at(10), 3)).bins, SizeIs(3));
}

TEST_P(LookingAround, SettingsAreKeptAsTheyAre) {
  EXPECT_THAT(engine_.load_settings(), IsEmpty());
  const std::string bytes("\0\xff settings", 11);
  engine_.store_settings("t", "old");
  engine_.store_settings("t", bytes);
  engine_.store_settings("*", std::string(10'000, 's'));
  engine_.store_settings("removed", "x");
  engine_.store_settings("removed", "");
  engine_.store_settings("never there", "");
  const std::vector<TopicSettings> settings = engine_.load_settings();
  ASSERT_THAT(settings, SizeIs(2));
  EXPECT_EQ(settings[0].topic, "*");
  EXPECT_EQ(settings[0].settings, std::string(10'000, 's'));
  EXPECT_EQ(settings[1].topic, "t");
  EXPECT_EQ(settings[1].settings, bytes);
  EXPECT_THAT(engine_.topic_names(), IsEmpty()) << "settings alone do not make a topic";
}

}  // namespace
}  // namespace delayq::contract
