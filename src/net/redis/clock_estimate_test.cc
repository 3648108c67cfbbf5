#include <gtest/gtest.h>

#include "net/redis/redis_client.h"

namespace delayq::net::redis {
namespace {

using Micros = ClockEstimate::Micros;
using Reading = ClockEstimate::Reading;
constexpr ClockEstimate::Steady kStart{};
constexpr Micros kMinute = std::chrono::minutes{1};
constexpr Micros kHour = std::chrono::hours{1};

/// Both clocks `since` the start; ours was set by `set` since.
Reading at(Micros since, Micros set = Micros::zero()) { return {since + set, kStart + since}; }

TEST(ClockEstimate, takes_half_of_the_trip_for_the_way) {
  ClockEstimate clock;
  EXPECT_EQ(clock.offset(at(Micros{0})), Millis{0});
  clock.add(at(Micros{1'000'000}), Micros{4'000}, Micros{1'052'000});
  EXPECT_EQ(clock.offset(at(Micros{1'000'000})), Millis{50});
  EXPECT_EQ(clock.time(at(Micros{3'000'000})), Micros{3'050'000});
}

TEST(ClockEstimate, of_another_machine_begins_with_its_first_answer) {
  ClockEstimate clock;
  const Reading asked = at(Micros{1'000'000});
  clock.add(asked, Micros{4'000}, Micros{5'002'000});
  clock.expect_another();
  EXPECT_EQ(clock.offset(asked), Millis{4'000}) << "until then it is not as if nothing was known";
  clock.add(asked, Micros{9'000}, Micros{5'007'500});
  EXPECT_EQ(clock.offset(asked), Millis{4'003}) << "however long the trip";
  clock.add(asked, Micros{9'100}, Micros{5'008'550});
  EXPECT_EQ(clock.offset(asked), Millis{4'003});
}

TEST(ClockEstimate, the_shortest_trip_counts_until_it_is_old) {
  ClockEstimate clock;
  clock.add(at(Micros{0}), Micros{2'000}, Micros{41'000});
  clock.add(at(4 * kMinute), Micros{9'000}, 4 * kMinute + Micros{47'500});
  EXPECT_EQ(clock.offset(at(4 * kMinute)), Millis{40});
  clock.add(at(5 * kMinute), Micros{9'000}, 5 * kMinute + Micros{47'500});
  EXPECT_EQ(clock.offset(at(5 * kMinute)), Millis{43});
  clock.add(at(5 * kMinute), Micros{1'000}, 5 * kMinute + Micros{-6'500});
  EXPECT_EQ(clock.offset(at(5 * kMinute)), Millis{-7}) << "a shorter one tells more at once";
}

TEST(ClockEstimate, the_other_clock_being_set_is_noticed_by_the_next_answer) {
  ClockEstimate clock;
  clock.add(at(Micros{0}), Micros{2'000}, Micros{41'000});
  clock.add(at(kMinute), Micros{9'000}, kMinute + Micros{44'500} + kHour);
  EXPECT_EQ(clock.offset(at(kMinute)), Millis{40} + kHour);
}

TEST(ClockEstimate, our_clock_being_set_changes_nothing) {
  for (const Micros set : {kHour, -kHour}) {
    for (const Micros away : {Micros{0}, Micros{40'000}}) {
      ClockEstimate clock;
      clock.add(at(Micros{0}), Micros{2'000}, Micros{1'000} + away);
      EXPECT_EQ(clock.time(at(kMinute, set)), kMinute + away) << "at once";
      EXPECT_EQ(clock.offset(at(kMinute, set)), std::chrono::round<Millis>(away - set));
      clock.add(at(kMinute, set), Micros{3'000}, kMinute + Micros{1'500} + away);
      EXPECT_EQ(clock.time(at(kMinute, set)), kMinute + away) << "with an answer that tells less";
      clock.add(at(kMinute, set), Micros{1'000}, kMinute + Micros{500} + away);
      EXPECT_EQ(clock.time(at(kMinute, set)), kMinute + away) << "and with one that tells more";
    }
  }
}

TEST(ClockEstimate, is_asked_for_again_when_our_clock_was_set) {
  ClockEstimate clock;
  EXPECT_FALSE(clock.wants_answer(at(kMinute)));
  clock.add(at(Micros{0}), Micros{2'000}, Micros{41'000});
  EXPECT_FALSE(clock.wants_answer(at(kMinute, Micros{50'000})));
  EXPECT_TRUE(clock.wants_answer(at(kMinute, kHour)));
  EXPECT_TRUE(clock.wants_answer(at(kMinute, -kHour)));
  clock.add(at(kMinute, kHour), Micros{9'000}, kMinute + Micros{44'500});
  EXPECT_FALSE(clock.wants_answer(at(2 * kMinute, kHour))) << "it was";
}

TEST(ClockEstimate, an_error_of_measurement_is_no_difference) {
  for (const Micros offset : {Micros{-2'900}, Micros{-600}, Micros{600}, Micros{2'900}}) {
    ClockEstimate clock;
    clock.add(at(Micros{1'000'000}), Micros{4'000}, Micros{1'002'000} + offset);
    EXPECT_EQ(clock.offset(at(kMinute)), Millis{0}) << offset.count();
  }
}

}  // namespace
}  // namespace delayq::net::redis
