#include "bench/load/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace delayq::bench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(Chart, MarksAreRoundAndReachTheTop) {
  EXPECT_THAT(round_marks(10), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(round_marks(437'000), ElementsAre(0, 100'000, 200'000, 300'000, 400'000, 500'000));
  EXPECT_THAT(round_marks(0), ElementsAre(0, 1));
  EXPECT_GE(round_marks(0.0137).back(), 0.0137);
}

TEST(Chart, NumbersAreShort) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(250), "250");
  EXPECT_EQ(short_number(1'500), "1.5k");
  EXPECT_EQ(short_number(2'000'000), "2M");
}

TEST(Chart, IsAWholeDocumentWithTheCurve) {
  Chart chart;
  chart.title = "a < b & c";
  chart.points = {{0, 0}, {5, 10}, {10, 5}};
  const std::string svg = to_svg(chart);
  EXPECT_TRUE(svg.starts_with("<svg xmlns="));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; c"));
  // From the lower left corner to the top in the middle.
  EXPECT_THAT(svg, HasSubstr("d=\"M70.0 368.0 L419.0 84.0 L768.0 226.0\""));
}

TEST(Chart, OfNothingIsStillADocument) {
  const std::string svg = to_svg({});
  EXPECT_THAT(svg, HasSubstr("d=\"\""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace delayq::bench
