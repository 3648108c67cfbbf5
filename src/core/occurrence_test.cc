
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/moment.h"
#include "tests/support/evenly.h"

namespace delayq {
namespace {

TEST(Occurrence, id_is_the_name_and_the_moment) {
  const Moment at = *parse_moment("2026-11-16T09:00:00Z");
  EXPECT_EQ(occurrence_id("nightly", at), "nightly@2026-11-16T09:00:00Z");
  EXPECT_EQ(occurrence_id("nightly", at + Millis{250}), "nightly@2026-11-16T09:00:00.250Z");
  EXPECT_EQ(occurrence_id("nightly", at + Millis{1}), "nightly@2026-11-16T09:00:00.001Z");
  EXPECT_EQ(occurrence_id("a@b", Moment{}), "a@b@1970-01-01T00:00:00Z");
  EXPECT_EQ(occurrence_id("x", *parse_moment("9999-12-31T23:59:59.999Z")), "x@9999-12-31T23:59:59.999Z");
}

TEST(Occurrence, owner_is_the_id_without_its_ending) {
  EXPECT_EQ(occurrence_owner("nightly@2026-11-16T09:00:00Z"), "nightly");
  EXPECT_EQ(occurrence_owner("nightly@2026-11-16T09:00:00.250Z"), "nightly");
  EXPECT_EQ(occurrence_owner("a@b@1970-01-01T00:00:00Z"), "a@b");
  EXPECT_EQ(occurrence_owner("Z@1970-01-01T00:00:00Z"), "Z");
}

TEST(Occurrence, only_the_last_ending_is_taken_off) {
  EXPECT_EQ(occurrence_owner("a@2026-11-16T09:00:00Z@2026-11-17T09:00:00Z"), "a@2026-11-16T09:00:00Z");
}

TEST(Occurrence, any_other_id_is_its_own_owner) {
  for (std::string_view id :
       {"", "Z", "order-1", "order-Z", "@2026-11-16T09:00:00Z", "@2026-11-16T09:00:00.250Z",
        "a@2026-11-16T09:00:00z", "a@2026-11-16t09:00:00Z", "a@2026-11-16 09:00:00Z", "a@2026-11-16T09:00:00",
        "a@2026-11-16T09:00:00Z ", "a@2026-11-16T09:00Z", "a@2026-11-16T09:00:00.25Z",
        "a@2026-11-16T09:00:00.2500Z", "a@2026-11-16T09:00:00,250Z", "a@2026-11-1xT09:00:00Z",
        "a@+026-11-16T09:00:00Z", "a@2026-11-16T09:00:00+00:00", "a 2026-11-16T09:00:00Z"}) {
    EXPECT_EQ(occurrence_owner(id), id);
  }
}

RC_GTEST_PROP(OccurrenceProperty, owner_of_an_id_is_its_name, ()) {
  const auto name = *rc::gen::nonEmpty(rc::gen::string<std::string>());
  const auto ms = *evenly<int64_t>(0, 253'402'300'800'000);
  const std::string id = occurrence_id(name, from_unix_ms(ms));
  RC_ASSERT(occurrence_owner(id) == name);
  RC_ASSERT(*parse_moment(std::string_view(id).substr(name.size() + 1)) == from_unix_ms(ms));
}

}  // namespace
}  // namespace delayq
