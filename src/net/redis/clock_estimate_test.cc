#include "net/redis/clock_estimate.h"

#include <gtest/gtest.h>

namespace delayq::net::redis {
namespace {

using Micros = ClockEstimate::Micros;
constexpr ClockEstimate::Steady kStart{};

TEST(ClockEstimate, takes_half_of_the_trip_for_the_way) {
  ClockEstimate clock;
  EXPECT_EQ(clock.offset(), Millis{0});
  clock.add(Micros{1'000'000}, Micros{4'000}, Micros{1'052'000}, kStart);
  EXPECT_EQ(clock.offset(), Millis{50});
}

TEST(ClockEstimate, of_another_machine_begins_with_its_first_answer) {
  ClockEstimate clock;
  clock.add(Micros{1'000'000}, Micros{4'000}, Micros{5'002'000}, kStart);
  clock.expect_another();
  EXPECT_EQ(clock.offset(), Millis{4'000}) << "until then it is not as if nothing was known";
  clock.add(Micros{1'000'000}, Micros{9'000}, Micros{5'007'500}, kStart);
  EXPECT_EQ(clock.offset(), Millis{4'003}) << "however long the trip";
  clock.add(Micros{1'000'000}, Micros{9'100}, Micros{5'008'550}, kStart);
  EXPECT_EQ(clock.offset(), Millis{4'003});
}

TEST(ClockEstimate, the_shortest_trip_counts_until_it_is_old) {
  ClockEstimate clock;
  clock.add(Micros{0}, Micros{2'000}, Micros{41'000}, kStart);
  clock.add(Micros{0}, Micros{9'000}, Micros{47'500}, kStart + std::chrono::minutes{4});
  EXPECT_EQ(clock.offset(), Millis{40});
  clock.add(Micros{0}, Micros{9'000}, Micros{47'500}, kStart + std::chrono::minutes{5});
  EXPECT_EQ(clock.offset(), Millis{43});
  clock.add(Micros{0}, Micros{1'000}, Micros{-6'500}, kStart + std::chrono::minutes{5});
  EXPECT_EQ(clock.offset(), Millis{-7}) << "a shorter one tells more at once";
}

TEST(ClockEstimate, a_clock_that_was_set_is_noticed_by_the_next_answer) {
  ClockEstimate clock;
  clock.add(Micros{0}, Micros{2'000}, Micros{41'000}, kStart);
  // Ours was set back by an hour.
  constexpr Micros kHour = std::chrono::hours{1};
  clock.add(Micros{0}, Micros{9'000}, Micros{44'500} + kHour, kStart + std::chrono::minutes{1});
  EXPECT_EQ(clock.offset(), Millis{40} + kHour);
}

TEST(ClockEstimate, an_error_of_measurement_is_no_difference) {
  for (const Micros offset : {Micros{-2'900}, Micros{-600}, Micros{600}, Micros{2'900}}) {
    ClockEstimate clock;
    clock.add(Micros{1'000'000}, Micros{4'000}, Micros{1'002'000} + offset, kStart);
    EXPECT_EQ(clock.offset(), Millis{0}) << offset.count();
  }
}

}  // namespace
}  // namespace delayq::net::redis
