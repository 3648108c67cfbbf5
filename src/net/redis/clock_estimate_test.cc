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
  clock.forget();
  EXPECT_EQ(clock.offset(), Millis{0});
}

TEST(ClockEstimate, the_shortest_trip_counts_until_it_is_old) {
  ClockEstimate clock;
  clock.add(Micros{0}, Micros{2'000}, Micros{41'000}, kStart);
  clock.add(Micros{0}, Micros{9'000}, Micros{94'500}, kStart + std::chrono::minutes{4});
  EXPECT_EQ(clock.offset(), Millis{40});
  clock.add(Micros{0}, Micros{9'000}, Micros{94'500}, kStart + std::chrono::minutes{5});
  EXPECT_EQ(clock.offset(), Millis{90});
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
