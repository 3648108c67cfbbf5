#include <gtest/gtest.h>

#include "net/protocol.h"

namespace delayq::net {
namespace {

TEST(AnswerBudget, a_connection_is_stopped_by_its_own_limit_and_by_that_of_all) {
  AnswerBudget budget({100, 250});
  AnswerBudget::Share a(budget);
  AnswerBudget::Share b(budget);
  a.set(99);
  EXPECT_TRUE(a.has_room(99));
  EXPECT_FALSE(a.has_room(100));
  EXPECT_FALSE(a.is_crowded_out(100)) << "that is its own doing";
  b.set(200);
  EXPECT_TRUE(budget.is_full());
  EXPECT_FALSE(a.has_room(99));
  EXPECT_TRUE(a.is_crowded_out(99));
  EXPECT_TRUE(a.has_room(49)) << "who gives something back may go on";
  b.set(0);
  EXPECT_EQ(budget.held(), 99U);
  EXPECT_TRUE(a.has_room(99));
}

TEST(AnswerBudget, who_is_gone_holds_nothing) {
  AnswerBudget budget;
  {
    AnswerBudget::Share gone(budget);
    gone.set(1'000);
    EXPECT_EQ(budget.held(), 1'000U);
  }
  EXPECT_EQ(budget.held(), 0U);
}

}  // namespace
}  // namespace delayq::net
