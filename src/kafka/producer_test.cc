#include "kafka/producer.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace delayq::kafka {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

/// Rings when the producer has something to report.
class Bell {
 public:
  void ring() {
    const std::lock_guard lock(mutex_);
    is_rung_ = true;
    rings_.notify_all();
  }
  /// Returns false when it was not rung for a long time.
  bool wait() {
    std::unique_lock lock(mutex_);
    const bool is_rung = rings_.wait_for(lock, seconds{30}, [this] { return is_rung_; });
    is_rung_ = false;
    return is_rung;
  }

 private:
  std::mutex mutex_;
  std::condition_variable rings_;
  bool is_rung_ = false;
};

class ProducerTest : public testing::Test {
 protected:
  /// librdkafka has brokers for tests, which live in the client. They create every topic, with 4 partitions.
  static ProducerOptions with_broker() {
    ProducerOptions options;
    options.client.brokers = "127.0.0.1:1";
    options.client.settings = {{"test.mock.num.brokers", "1"}};
    return options;
  }
  static ProducerOptions without_broker() {
    ProducerOptions options;
    options.client.brokers = "127.0.0.1:1";
    options.timeout = seconds{1};
    return options;
  }
  void open(ProducerOptions options) {
    options.wakeup = [this] { bell_.ring(); };
    auto opened = open_producer(std::move(options));
    ASSERT_TRUE(opened.ok()) << opened.error().detail;
    producer_ = std::move(*opened);
  }
  /// Polls until everything is confirmed.
  void settle() {
    while (producer_->outstanding() > 0) {
      if (producer_->poll(confirmed_)) continue;
      ASSERT_TRUE(bell_.wait());
    }
  }

  Bell bell_;
  std::unique_ptr<Producer> producer_;
  std::vector<Confirmation> confirmed_;
};

TEST_F(ProducerTest, EachRecordIsConfirmedOnceInTheOrderOfItsPartition) {
  open(with_broker());
  constexpr uint64_t kRecords = 2'000;
  for (uint64_t i = 0; i < kRecords; ++i) {
    const std::string key = fmt::format("key-{}", i % 10);
    const std::array headers{Header{"delayq-id", key}, Header{"empty", ""}};
    ASSERT_TRUE(producer_->send({.topic = "t", .key = key, .value = "x", .headers = headers}, i).ok());
  }
  settle();
  std::set<uint64_t> tokens;
  std::map<int32_t, std::pair<uint64_t, int64_t>> last;
  for (const Confirmation& each : confirmed_) {
    ASSERT_EQ(each.error, nullptr) << each.error->detail;
    EXPECT_TRUE(tokens.insert(each.token).second);
    const auto [place, is_first] = last.try_emplace(each.partition, each.token, each.offset);
    if (!is_first) {
      EXPECT_GT(each.token, place->second.first);
      EXPECT_EQ(each.offset, place->second.second + 1);
      place->second = {each.token, each.offset};
    }
  }
  EXPECT_EQ(tokens.size(), kRecords);
  EXPECT_GT(last.size(), 1U) << "keys are spread";
}

TEST_F(ProducerTest, APartitionCanBeChosen) {
  open(with_broker());
  ASSERT_TRUE(producer_->send({.topic = "t", .partition = 2, .value = "x"}, 1).ok());
  settle();
  EXPECT_EQ(confirmed_.at(0).partition, 2);
}

TEST_F(ProducerTest, AFullBufferRefuses) {
  ProducerOptions options = without_broker();
  options.max_records = 3;
  open(options);
  for (uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(producer_->send({.topic = "t", .value = "x"}, i).ok());
  const Status full = producer_->send({.topic = "t", .value = "x"}, 3);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(producer_->outstanding(), 3U);
}

TEST_F(ProducerTest, ABrokerThatIsAwayIsUnavailableAndTheReasonIsTold) {
  open(without_broker());
  ASSERT_TRUE(producer_->send({.topic = "t", .value = "x"}, 7).ok());
  settle();
  ASSERT_EQ(confirmed_.size(), 1U);
  EXPECT_EQ(confirmed_[0].token, 7U);
  ASSERT_NE(confirmed_[0].error, nullptr);
  EXPECT_EQ(confirmed_[0].error->code, ErrorCode::kUnavailable);
  EXPECT_THAT(confirmed_[0].error->detail, HasSubstr("Connection refused"));
  EXPECT_FALSE(producer_->is_connected());
  EXPECT_FALSE(producer_->is_broken());
  EXPECT_THAT(std::string(producer_->last_error()), HasSubstr("127.0.0.1:1"));
}

TEST_F(ProducerTest, ANameThatNoTopicCanHaveIsRefused) {
  open(with_broker());
  const std::string long_name(600, 'x');
  const Status status = producer_->send({.topic = long_name, .value = "x"}, 1);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kInvalid);
}

TEST_F(ProducerTest, ItCanBeDestroyedWithRecordsUnderWay) {
  open(without_broker());
  for (uint64_t i = 0; i < 1'000; ++i) ASSERT_TRUE(producer_->send({.topic = "t", .value = "x"}, i).ok());
  producer_.reset();
}

TEST_F(ProducerTest, WrongOptionsAreRefused) {
  ProducerOptions options = without_broker();
  options.client.settings = {{"linger.ms", "soon"}};
  const auto opened = open_producer(options);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().field, "settings.linger.ms");
}

}  // namespace
}  // namespace delayq::kafka
