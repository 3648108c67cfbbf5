#include "engine/redis/joint_call.h"

#include <optional>

#include <gmock/gmock.h>

namespace delayq::redis {
namespace {

using resp::Value;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr net::redis::Script kScript{"script", "return 1"};
constexpr net::redis::Script kOther{"other", "return 2"};
constexpr Moment kNow{Millis{1'000}};

Value number(int64_t integer) {
  Value value;
  value.type = Value::Type::kInteger;
  value.integer = integer;
  return value;
}

Value said(const std::vector<int64_t>& numbers) {
  Value value;
  value.type = Value::Type::kArray;
  for (const int64_t each : numbers) value.items.push_back(number(each));
  return value;
}

class JointCallTest : public testing::Test {
 protected:
  JointCall call(Share share) const {
    return {{.script = kScript, .share = share, .shard = 0, .topic = "t", .now = kNow}, Arguments{}};
  }
  /// Adds verbs with this many items each; their replies are kept.
  void add(JointCall& call, const std::vector<uint32_t>& verbs) {
    answers_.resize(verbs.size());
    for (size_t i = 0; i < verbs.size(); ++i) {
      call.add(verbs[i], [this, i](Result<Value> value) { answers_[i] = std::move(value); });
    }
  }
  /// The reply that the verb got, as numbers.
  std::vector<int64_t> told(size_t verb) const {
    std::vector<int64_t> numbers;
    for (const Value& item : (**answers_[verb]).items) numbers.push_back(item.integer);
    return numbers;
  }

  std::vector<std::optional<Result<Value>>> answers_;
};

TEST_F(JointCallTest, OneVerbHasTheWholeAnswer) {
  JointCall alone = call(Share::kOneEach);
  add(alone, {2});
  alone.answer(said({7, 3, 1, 0}));
  EXPECT_THAT(told(0), ElementsAre(7, 3, 1, 0));
}

TEST_F(JointCallTest, EachVerbHasWhatIsSaidOfItsItems) {
  JointCall joint = call(Share::kOneEach);
  add(joint, {2, 1, 3});
  joint.answer(said({7, 3, 10, 11, 20, 30, 31, 32}));
  EXPECT_THAT(told(0), ElementsAre(7, 3, 10, 11)) << "what concerns the shard is said once";
  EXPECT_THAT(told(1), ElementsAre(0, 0, 20));
  EXPECT_THAT(told(2), ElementsAre(0, 0, 30, 31, 32));
}

TEST_F(JointCallTest, AnExceptionGoesToItsVerbWithThePlaceThere) {
  JointCall joint = call(Share::kExceptions);
  add(joint, {2, 3, 1, 1});
  joint.answer(said({0, 0, 1, 3, 0, 50, 2, 1, 0, 60, 4, 2, 0, 70, 6, 3, 1, 80}));
  EXPECT_THAT(told(0), ElementsAre(0, 0, 1, 3, 0, 50));
  EXPECT_THAT(told(1), ElementsAre(0, 0, 0, 1, 0, 60, 2, 2, 0, 70));
  EXPECT_THAT(told(2), ElementsAre(0, 0));
  EXPECT_THAT(told(3), ElementsAre(0, 0, 0, 3, 1, 80));
}

TEST_F(JointCallTest, WhoAskedFirstHasTheFirstPairs) {
  JointCall joint = call(Share::kTwoEach);
  add(joint, {1, 2, 1});
  joint.answer(said({0, 0, 1, 10, 2, 20}));
  EXPECT_THAT(told(0), ElementsAre(0, 0, 1, 10));
  EXPECT_THAT(told(1), ElementsAre(0, 0, 2, 20));
  EXPECT_THAT(told(2), ElementsAre(0, 0)) << "there are no more";
}

TEST_F(JointCallTest, ThatThereIsMoreIsSaidToAllWhoDidNotGetTheirs) {
  JointCall joint = call(Share::kTwoEach);
  add(joint, {1, 2, 1, 3});
  joint.answer(said({0, 0, 1, 10, 2, 20, 9}));
  EXPECT_THAT(told(0), ElementsAre(0, 0, 1, 10)) << "it has all";
  EXPECT_THAT(told(1), ElementsAre(0, 0, 2, 20, 9));
  EXPECT_THAT(told(2), ElementsAre(0, 0, 9));
  EXPECT_THAT(told(3), ElementsAre(0, 0, 9));
}

TEST_F(JointCallTest, AnErrorIsEverybodys) {
  JointCall joint = call(Share::kOneEach);
  add(joint, {1, 1});
  joint.answer(Error{ErrorCode::kUnavailable, "redis", "gone"});
  for (const auto& answer : answers_) {
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->error().code, ErrorCode::kUnavailable);
  }
}

TEST_F(JointCallTest, AnAnswerWithoutSenseIsNobodys) {
  for (const Value& nonsense : {Value{}, said({1}), number(3)}) {
    JointCall joint = call(Share::kOneEach);
    add(joint, {1, 1});
    joint.answer(nonsense);
    EXPECT_THAT(told(0), IsEmpty());
    EXPECT_THAT(told(1), IsEmpty());
  }
}

TEST_F(JointCallTest, AnAnswerThatIsTooShortLeavesTheLastWithout) {
  JointCall joint = call(Share::kOneEach);
  add(joint, {1, 2});
  joint.answer(said({0, 0, 5, 6}));
  EXPECT_THAT(told(1), ElementsAre(0, 0, 6));
}

TEST_F(JointCallTest, WhatTheScriptDidNotDoIsAskedAgain) {
  JointCall joint = call(Share::kOneEach);
  add(joint, {1, 2, 1});
  Arguments& arguments = joint.finish();
  for (const char* word : {"a", "1", "b", "2", "c", "3", "d", "4"}) arguments.text(word);
  joint.note_sent();
  Value first = said({7, 3, 10, 20});
  EXPECT_TRUE(joint.keep_part(first));
  EXPECT_THAT(joint.arguments().words(), ElementsAre("c", "3", "d", "4"));
  Value second = said({0, 0, 21});
  EXPECT_TRUE(joint.keep_part(second));
  EXPECT_THAT(joint.arguments().words(), ElementsAre("d", "4"));
  Value last = said({8, 1, 30});
  EXPECT_FALSE(joint.keep_part(last));
  joint.answer(last);
  EXPECT_THAT(told(0), ElementsAre(8, 1, 10)) << "of the others the caller has taken note";
  EXPECT_THAT(told(1), ElementsAre(0, 0, 20, 21));
  EXPECT_THAT(told(2), ElementsAre(0, 0, 30));
}

TEST_F(JointCallTest, TheArgumentsThatAllHaveInCommonRemain) {
  const std::vector<int64_t> numbers{5, 6};
  Arguments about;
  about.text("now");
  JointCall joint(
      {.script = kScript, .share = Share::kTwoEach, .topic = "t", .now = kNow, .numbers = numbers},
      std::move(about));
  add(joint, {3});
  joint.finish().text("a").text("b").text("c");
  Value first = said({0, 0, 1, 10, 2, 20});
  EXPECT_TRUE(joint.keep_part(first));
  EXPECT_THAT(joint.arguments().words(), ElementsAre("now", "5", "6", "c"));
  joint.answer(said({0, 0, 3, 30}));
  EXPECT_THAT(told(0), ElementsAre(0, 0, 1, 10, 2, 20, 3, 30));
}

TEST_F(JointCallTest, OnlyAnAnswerThatDidSomethingIsAPart) {
  for (Value nonsense : {Value{}, said({1}), said({0, 0}), number(3)}) {
    JointCall joint = call(Share::kOneEach);
    add(joint, {2});
    EXPECT_FALSE(joint.keep_part(nonsense)) << "to ask again would not end";
  }
  JointCall take(
      {.script = kScript, .share = Share::kTwoEach, .topic = "t", .now = kNow, .is_count_enough = true},
      Arguments{});
  add(take, {2});
  Value one = said({0, 0, 1, 10});
  EXPECT_FALSE(take.keep_part(one)) << "a take that finds fewer has found all";
  JointCall push = call(Share::kExceptions);
  add(push, {2});
  Value exception = said({0, 0, 1, 3, 0, 50});
  EXPECT_FALSE(push.keep_part(exception));
}

TEST_F(JointCallTest, TakesOnlyWhatIsAskedUnderTheSameTerms) {
  const std::vector<int64_t> numbers{1, 2};
  const Terms terms{.script = kScript, .shard = 1, .topic = "t", .now = kNow, .numbers = numbers};
  const JointCall joint(terms, Arguments{});
  EXPECT_TRUE(joint.takes(terms, 1));
  const std::vector<int64_t> others{1, 3};
  EXPECT_FALSE(joint.takes({kOther, Share::kOneEach, 1, "t", kNow, numbers}, 1));
  EXPECT_FALSE(joint.takes({kScript, Share::kOneEach, 2, "t", kNow, numbers}, 1));
  EXPECT_FALSE(joint.takes({kScript, Share::kOneEach, 1, "u", kNow, numbers}, 1));
  EXPECT_FALSE(joint.takes({kScript, Share::kOneEach, 1, "t", kNow + Millis{1}, numbers}, 1));
  EXPECT_FALSE(joint.takes({kScript, Share::kOneEach, 1, "t", kNow, others}, 1));
  EXPECT_FALSE(joint.takes({kScript, Share::kOneEach, 1, "t", kNow, {}}, 1));
}

TEST_F(JointCallTest, IsBounded) {
  JointCall joint = call(Share::kOneEach);
  const Terms terms{.script = kScript, .topic = "t", .now = kNow};
  add(joint, {kItemsPerCall - 1});
  EXPECT_TRUE(joint.takes(terms, 1));
  EXPECT_FALSE(joint.takes(terms, 2));
  joint.finish().text(std::string(kBytesPerCall, 'x'));
  EXPECT_FALSE(joint.takes(terms, 1)) << "bytes count, too";
}

TEST_F(JointCallTest, ATakeSaysItsSumAtTheEnd) {
  JointCall joint({.script = kScript, .topic = "t", .now = kNow, .is_count_enough = true}, Arguments{});
  add(joint, {3, 4});
  EXPECT_THAT(joint.finish().words(), ElementsAre("7"));
}

}  // namespace
}  // namespace delayq::redis
