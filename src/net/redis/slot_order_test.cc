#include <gmock/gmock.h>

#include "net/redis/request.h"

namespace delayq::net::redis {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class SlotOrders : public testing::Test {
 protected:
  static Request request(uint64_t number, uint16_t lane = 7) {
    Request made;
    made.number = number;
    made.lane = lane;
    return made;
  }
  static std::vector<uint64_t> numbers(const std::vector<Request>& requests) {
    std::vector<uint64_t> numbers;
    for (const Request& each : requests) numbers.push_back(each.number);
    return numbers;
  }
  void leave(int count) {
    for (int i = 0; i < count; ++i) order_.leave(7);
  }

  SlotOrder order_;
};

TEST_F(SlotOrders, NobodyIsHeldWhereNothingIsRefused) {
  leave(2);
  EXPECT_FALSE(order_.is_stopped(7));
  EXPECT_FALSE(order_.come_back(7));
  EXPECT_FALSE(order_.come_back(7));
}

TEST_F(SlotOrders, TheRefusedGoFirstThenThoseWhoCameLater) {
  leave(3);
  order_.stop(request(2));
  EXPECT_FALSE(order_.come_back(7));
  EXPECT_TRUE(order_.is_stopped(7));
  EXPECT_FALSE(order_.is_stopped(8)) << "no business of another lane";
  order_.hold(request(4));
  order_.stop(request(1));  // from another node
  EXPECT_FALSE(order_.come_back(7));
  EXPECT_TRUE(order_.come_back(7)) << "the last one, with an answer";
  EXPECT_THAT(numbers(order_.resume(7)), ElementsAre(1, 2));
  leave(2);
  order_.hold(request(5));
  EXPECT_FALSE(order_.come_back(7));
  EXPECT_TRUE(order_.come_back(7));
  EXPECT_THAT(numbers(order_.resume(7)), ElementsAre(4, 5));
  EXPECT_FALSE(order_.is_stopped(7));
}

TEST_F(SlotOrders, NobodyOvertakesARequestThatWaitsToBeSent) {
  leave(2);
  order_.stop_behind(7);
  EXPECT_TRUE(order_.is_stopped(7));
  order_.hold(request(3));
  order_.stop_behind(7);  // the second one waits, too
  EXPECT_FALSE(order_.come_back(7));
  EXPECT_TRUE(order_.come_back(7));
  EXPECT_THAT(numbers(order_.resume(7)), ElementsAre(3));
  EXPECT_FALSE(order_.is_stopped(7));
}

TEST_F(SlotOrders, ARequestForAnotherNodeWaitsForThoseOnTheirWay) {
  const auto* const one = reinterpret_cast<const Link*>(&order_);
  const auto* const other = reinterpret_cast<const Link*>(this);
  EXPECT_FALSE(order_.would_overtake(7, one)) << "nothing is on its way";
  leave(1);
  order_.sent(7, one);
  EXPECT_FALSE(order_.would_overtake(7, one)) << "one connection keeps the order";
  EXPECT_TRUE(order_.would_overtake(7, other));
  EXPECT_FALSE(order_.come_back(7));
  EXPECT_FALSE(order_.would_overtake(7, other));
}

TEST_F(SlotOrders, WhoIsRefusedAgainIsStillFirst) {
  leave(1);
  order_.stop(request(1));
  EXPECT_TRUE(order_.come_back(7));
  EXPECT_THAT(numbers(order_.resume(7)), ElementsAre(1));
  leave(1);
  order_.hold(request(2));
  order_.stop(request(1));
  EXPECT_TRUE(order_.come_back(7));
  EXPECT_THAT(numbers(order_.resume(7)), ElementsAre(1));
  leave(1);
  EXPECT_TRUE(order_.come_back(7));
  EXPECT_THAT(numbers(order_.resume(7)), ElementsAre(2));
}

TEST_F(SlotOrders, ThoseForAnotherNodeWait) {
  leave(3);
  Request first = request(1);
  first.to = Address{"b", 1};
  Request second = request(2);
  second.to = Address{"c", 1};
  order_.stop(std::move(second));
  order_.stop(std::move(first));
  order_.stop(request(3));
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(order_.come_back(7));
  EXPECT_TRUE(order_.come_back(7));
  for (const uint64_t number : {1, 2, 3}) {
    EXPECT_THAT(numbers(order_.resume(7)), ElementsAre(number));
    leave(1);
    EXPECT_TRUE(order_.come_back(7));
  }
  EXPECT_THAT(numbers(order_.resume(7)), IsEmpty());
}

TEST_F(SlotOrders, AllWaitAsLongAsOne) {
  leave(2);
  Request patient = request(1);
  patient.not_before = Loop::steady_now();
  patient.give_up = patient.not_before + Millis{9};
  order_.stop(std::move(patient));
  order_.stop(request(2));
  EXPECT_FALSE(order_.come_back(7));
  EXPECT_TRUE(order_.come_back(7));
  const std::vector<Request> next = order_.resume(7);
  EXPECT_EQ(next[1].not_before, next[0].not_before);
  EXPECT_EQ(next[1].give_up, next[0].give_up);
}

TEST_F(SlotOrders, NobodyWaitedForWhoWasRefused) {
  leave(1);
  order_.stop(request(1));
  EXPECT_TRUE(order_.come_back(7));
  EXPECT_THAT(numbers(order_.resume(7)), ElementsAre(1));
  leave(1);
  EXPECT_TRUE(order_.come_back(7));
  EXPECT_THAT(numbers(order_.resume(7)), IsEmpty());
  EXPECT_FALSE(order_.is_stopped(7));
}

}  // namespace
}  // namespace delayq::net::redis
