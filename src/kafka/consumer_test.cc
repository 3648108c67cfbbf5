#include "kafka/consumer.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "kafka/producer.h"
#include "kafka/scan.h"
#include "tests/support/kafka_process.h"
#include "tests/support/redis_process.h"

namespace delayq::kafka {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr size_t kMuch = size_t{1} << 20;
constexpr int kDeadline = 60;

/// A member of a group, and what it has got.
struct Member {
  explicit Member(ConsumerOptions options) {
    auto opened = open_consumer(std::move(options));
    EXPECT_TRUE(opened.ok()) << opened.error().detail;
    consumer = std::move(*opened);
  }
  explicit Member(std::unique_ptr<Consumer> opened) : consumer(std::move(opened)) {}
  void poll(size_t most = 1'000) {
    Polled polled = consumer->poll(most, kMuch);
    for (InputRecord& record : polled.records) records.push_back(std::move(record));
    if (polled.committed) commits.push_back(polled.committed->ok());
    if (!polled.rebalance) return;
    for (const PartitionId& each : polled.rebalance->partitions) {
      if (polled.rebalance->kind == Rebalance::Kind::kAssigned) {
        assigned.insert(each);
      } else {
        assigned.erase(each);
      }
    }
    if (polled.rebalance->kind == Rebalance::Kind::kRevoked && lets_go) consumer->let_go();
    is_revoked |= polled.rebalance->kind == Rebalance::Kind::kRevoked;
  }
  std::vector<std::string> values() const {
    std::vector<std::string> values;
    for (const InputRecord& each : records) values.emplace_back(each.value.value_or("(none)"));
    return values;
  }

  std::unique_ptr<Consumer> consumer;  // outlives its records
  std::vector<InputRecord> records;
  std::set<PartitionId> assigned;
  std::vector<bool> commits;
  bool lets_go = true;
  bool is_revoked = false;
};

class ConsumerTest : public testing::Test {
 protected:
  static support::KafkaProcess& broker() {
    static support::KafkaProcess broker;
    return broker;
  }
  static ConsumerOptions reading(const std::string& topic) {
    ConsumerOptions options;
    options.client = broker().client();
    options.group = "group-of-" + topic;
    options.topics = {topic};
    options.session_timeout = seconds{6};
    return options;
  }
  static void write(const std::string& topic, int from, int to, std::optional<int32_t> partition = 0) {
    auto producer = open_producer({.client = broker().client()});
    ASSERT_TRUE(producer.ok());
    for (int i = from; i < to; ++i) {
      const std::string value = std::to_string(i);
      ASSERT_TRUE((*producer)->send({.topic = topic, .partition = partition, .value = value}, 0).ok());
    }
    std::vector<Confirmation> confirmed;
    support::wait_until(
        "all is written",
        [&] {
          (*producer)->poll(confirmed);
          return (*producer)->outstanding() == 0;
        },
        kDeadline);
    for (const Confirmation& each : confirmed) ASSERT_EQ(each.error, nullptr) << each.error->detail;
  }
  template <class Condition>
  static void poll_until(const std::string& what, std::vector<Member*> members, Condition is_so) {
    support::wait_until(
        what,
        [&] {
          for (Member* each : members) each->poll();
          return is_so();
        },
        kDeadline);
  }
};

TEST_F(ConsumerTest, RecordsComeInOrderAndAreReadOnBehindTheCommit) {
  broker().create({"ordered", 1, 1, {}});
  write("ordered", 0, 5);
  {
    Member member(reading("ordered"));
    poll_until("all are read", {&member}, [&] { return member.records.size() == 5; });
    EXPECT_THAT(member.values(), ElementsAre("0", "1", "2", "3", "4"));
    EXPECT_EQ(member.records[2].offset, 2);
    EXPECT_TRUE(member.records[2].timestamp);
    EXPECT_EQ(member.consumer->end_of({"ordered", 0}), 5);
    EXPECT_EQ(member.consumer->trouble(), "");
    const std::array positions{Position{{"ordered", 0}, 3}};
    member.consumer->commit(positions);
    poll_until("the commit is confirmed", {&member}, [&] { return !member.commits.empty(); });
    EXPECT_THAT(member.commits, ElementsAre(true));
    member.consumer->close();
    poll_until("it is closed", {&member}, [&] { return member.consumer->is_closed(); });
    EXPECT_THAT(member.assigned, IsEmpty());
  }
  Member next(reading("ordered"));
  poll_until("the rest is read", {&next}, [&] { return next.records.size() >= 2; });
  EXPECT_THAT(next.values(), ElementsAre("3", "4"));
}

TEST_F(ConsumerTest, NullsAndEmptyValuesDiffer) {
  broker().create({"nulls", 1, 1, {}});
  auto producer = open_producer({.client = broker().client()});
  ASSERT_TRUE(producer.ok());
  const std::array headers{Header{"none", std::nullopt}, Header{"empty", ""}, Header{"empty", "x"}};
  ASSERT_TRUE((*producer)->send({.topic = "nulls", .key = "k", .headers = headers}, 0).ok());
  ASSERT_TRUE((*producer)->send({.topic = "nulls", .value = std::string_view()}, 1).ok());
  Member member(reading("nulls"));
  std::vector<Confirmation> confirmed;
  poll_until("both are read", {&member}, [&] {
    (*producer)->poll(confirmed);
    return member.records.size() == 2;
  });
  const InputRecord& first = member.records[0];
  EXPECT_EQ(first.value, std::nullopt);
  EXPECT_EQ(first.key, "k");
  ASSERT_EQ(first.headers.size(), 3U);
  EXPECT_EQ(first.headers[0].value, std::nullopt);
  EXPECT_EQ(first.headers[1].value, "");
  EXPECT_EQ(first.headers[2].value, "x");
  EXPECT_EQ(member.records[1].value, "");
  EXPECT_EQ(member.records[1].key, std::nullopt);
}

TEST_F(ConsumerTest, APausedPartitionIsReadOnWhereItStopped) {
  broker().create({"paused", 2, 1, {}});
  write("paused", 0, 100, 0);
  write("paused", 100, 110, 1);
  Member member(reading("paused"));
  support::wait_until(
      "some are read",
      [&] {
        member.poll(1);
        return std::any_of(member.records.begin(), member.records.end(),
                           [](const InputRecord& each) { return each.partition == 0; });
      },
      kDeadline);
  const std::array first{PartitionId{"paused", 0}};
  member.consumer->pause(first);
  const auto of_first = [&] {
    return std::count_if(member.records.begin(), member.records.end(),
                         [](const InputRecord& each) { return each.partition == 0; });
  };
  const auto before = of_first();
  poll_until("the other one is read", {&member},
             [&] { return static_cast<int64_t>(member.records.size()) - of_first() == 10; });
  EXPECT_EQ(of_first(), before);
  member.consumer->resume(first);
  poll_until("it is read on", {&member}, [&] { return of_first() >= 100; });
  std::vector<int64_t> offsets;
  for (const InputRecord& each : member.records) {
    if (each.partition == 0) offsets.push_back(each.offset);
  }
  std::vector<int64_t> expected(100);
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<int64_t>(i);
  EXPECT_EQ(offsets, expected) << "none twice, none missing";
}

TEST_F(ConsumerTest, PartitionsAreSharedAndGivenBackOnlyWhenTheOwnerSays) {
  broker().create({"shared", 2, 1, {}});
  write("shared", 0, 10, 0);
  write("shared", 10, 20, 1);
  Member first(reading("shared"));
  poll_until("it has both", {&first},
             [&] { return first.assigned.size() == 2 && first.records.size() == 20; });
  first.lets_go = false;
  Member second(reading("shared"));
  poll_until("one is revoked", {&first, &second}, [&] { return first.is_revoked; });
  for (int i = 0; i < 20; ++i) {
    first.poll();
    second.poll();
  }
  EXPECT_THAT(second.assigned, IsEmpty()) << "the owner has not let it go";
  const PartitionId gone{"shared", first.assigned.contains({"shared", 0}) ? 1 : 0};
  const std::array positions{Position{gone, 7}};
  first.consumer->commit(positions);
  first.lets_go = true;
  first.consumer->let_go();
  poll_until("the second has it", {&first, &second},
             [&] { return second.assigned.size() == 1 && second.records.size() == 3; });
  EXPECT_EQ(second.records[0].offset, 7) << "behind the commit that came before";
  EXPECT_EQ(second.assigned.count(gone), 1U);
}

TEST_F(ConsumerTest, AMissingTopicIsReportedAndReadWhenItIsThere) {
  Member member(reading("missing"));
  poll_until("it is reported", {&member}, [&] { return !member.consumer->trouble().empty(); });
  EXPECT_THAT(std::string(member.consumer->trouble()), HasSubstr("missing"));
  broker().create({"missing", 1, 1, {}});
  write("missing", 0, 1);
  poll_until("it is read", {&member}, [&] { return member.records.size() == 1; });
  EXPECT_EQ(member.consumer->trouble(), "");
}

// librdkafka 2.0.2 would end the program (its issue 4312).
TEST_F(ConsumerTest, IsDestroyedBeforeItsFirstAssignment) {
  ConsumerOptions options = reading("early");
  options.client.brokers = "127.0.0.1:1";
  {
    Member nobody_answers(options);
    poll_until("that is seen", {&nobody_answers},
               [&] { return !nobody_answers.consumer->trouble().empty(); });
  }
  {
    Member closes(options);
    closes.consumer->close();
    closes.poll();
  }
  broker().create({"early", 1, 1, {}});
  // The moment that matters is between two answers of the broker, so each one lives a little longer.
  bool is_assigned = false;
  for (int round = 0; round < 100 && !is_assigned; ++round) {
    ConsumerOptions joining = reading("early");
    joining.group = fmt::format("early-{}", round);
    Member joins(joining);
    const auto end = std::chrono::steady_clock::now() + round * std::chrono::milliseconds{4};
    while (std::chrono::steady_clock::now() < end) joins.poll();
    is_assigned = !joins.assigned.empty();
  }
  {
    Member missing(reading("never-made"));
    poll_until("that is seen", {&missing}, [&] { return !missing.consumer->trouble().empty(); });
    missing.consumer->close();
    poll_until("it is closed", {&missing}, [&] { return missing.consumer->is_closed(); });
  }
}

TEST_F(ConsumerTest, ARestartedBrokerIsReadOn) {
  broker().create({"restarted", 1, 1, {}});
  write("restarted", 0, 3);
  ConsumerOptions options = reading("restarted");
  options.session_timeout = seconds{60};  // a busy machine starts a broker slowly
  Member member(std::move(options));
  poll_until("all are read", {&member}, [&] { return member.records.size() == 3; });
  broker().kill();
  poll_until("that is seen", {&member}, [&] { return !member.consumer->trouble().empty(); });
  broker().start();
  write("restarted", 3, 5);
  poll_until("the others are read", {&member}, [&] { return member.records.size() >= 5; });
  EXPECT_THAT(member.values(), ElementsAre("0", "1", "2", "3", "4"));
  EXPECT_EQ(member.consumer->trouble(), "");
}

TEST_F(ConsumerTest, AnAssignedOneReadsWhatItsUserSaysAndTheGroupKeepsTheOffsets) {
  broker().create({"assigned", 3, 1, {}});
  for (int32_t i = 0; i < 3; ++i) write("assigned", 10 * i, 10 * i + 3, i);
  const std::array<PartitionId, 1> first{PartitionId{"assigned", 0}};
  const std::array<PartitionId, 1> second{PartitionId{"assigned", 1}};
  const auto open = [] {
    auto opened = open_assigned_consumer(reading("assigned"));
    EXPECT_TRUE(opened.ok()) << opened.error().detail;
    return std::move(*opened);
  };
  {
    auto assigned = open();
    AssignedConsumer& consumer = *assigned;
    Member member(std::move(assigned));
    consumer.assign(first);
    poll_until("the first partition", {&member}, [&] { return member.records.size() == 3; });
    consumer.assign(second);
    poll_until("the second one, too", {&member}, [&] { return member.records.size() == 6; });
    EXPECT_EQ(member.assigned.size(), 2U);
    EXPECT_THAT(member.values(), ElementsAre("0", "1", "2", "10", "11", "12"))
        << "a new assignment does not read the others again";
    consumer.commit(std::array<Position, 1>{{{first[0], 2}}});
    poll_until("the commit", {&member}, [&] { return !member.commits.empty(); });
    EXPECT_TRUE(member.commits.back());
    consumer.unassign(first, false);
    poll_until("it is revoked", {&member}, [&] { return member.is_revoked; });
    write("assigned", 90, 91, 0);
    write("assigned", 91, 92, 1);
    poll_until("what is read still", {&member}, [&] { return member.records.size() == 7; });
    EXPECT_EQ(member.values().back(), "91");
    consumer.unassign(second, true);
    poll_until("it is lost", {&member}, [&] { return member.assigned.empty(); });
    consumer.close();
    poll_until("it is closed", {&member}, [&] { return consumer.is_closed(); });
  }
  auto assigned = open();
  AssignedConsumer& consumer = *assigned;
  Member member(std::move(assigned));
  consumer.assign(first);
  poll_until("what is behind the commit", {&member}, [&] { return member.records.size() == 2; });
  EXPECT_THAT(member.values(), ElementsAre("2", "90"));
}

TEST_F(ConsumerTest, AScanReadsBehindTheOffsetsOfAGroupToTheEnd) {
  broker().create({"scanned", 2, 1, {}});
  write("scanned", 0, 5, 0);
  write("scanned", 10, 13, 1);
  const std::array<std::string, 2> topics{"scanned", "scanned-missing"};
  std::vector<std::string> values;
  const auto take = [&](const InputRecord& record) {
    values.emplace_back(*record.value);
    return Status{};
  };
  const ClientOptions client = broker().client();
  EXPECT_THAT(*groups_of(client, topics, seconds{30}), IsEmpty());
  ScanOptions options{client, {topics.begin(), topics.end()}, "", seconds{30}};
  const auto all = scan(options, take);
  ASSERT_TRUE(all.ok()) << all.error().detail;
  EXPECT_EQ(all->records, 8U);
  EXPECT_THAT(all->missing, ElementsAre("scanned-missing"));

  auto member = open_assigned_consumer(reading("scanned"));
  ASSERT_TRUE(member.ok());
  (*member)->commit(std::array<Position, 2>{{{{"scanned", 0}, 3}, {{"scanned", 1}, 3}}});
  bool is_committed = false;
  support::wait_until(
      "the commit",
      [&] {
        is_committed |= (*member)->poll(1, kMuch).committed.has_value();
        return is_committed;
      },
      kDeadline);
  EXPECT_THAT(*groups_of(client, topics, seconds{30}), ElementsAre("group-of-scanned"));
  values.clear();
  options.group = "group-of-scanned";
  const auto rest = scan(options, take);
  ASSERT_TRUE(rest.ok()) << rest.error().detail;
  EXPECT_THAT(values, ElementsAre("3", "4"));
  const auto stopped = scan(options, [](const InputRecord&) { return Status{invalid("enough")}; });
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().detail, "enough");
}

}  // namespace
}  // namespace delayq::kafka
