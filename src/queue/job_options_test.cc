#include "queue/job_options.h"

#include <gmock/gmock.h>

#include "core/limits.h"
#include "core/random.h"
#include "queue/msgpack.h"

namespace delayq {
namespace {

using testing::HasSubstr;

std::string encoded_options(const JobOptions& options) {
  std::string bytes;
  encode_job_options(options, bytes);
  return bytes;
}

/// A record with the key "k" and one header.
constexpr std::string_view kCarried{"\x94\x01\xa1k\xa4name\xa5value"};

JobOptions everything() {
  return {.attempts = 3,
          .backoff = StepBackoff{{Millis{100}, Millis{200}}},
          .lease = Millis{5'000},
          .callback = "https://shop.example/hook",
          .content_type = "text/plain",
          .method = "PUT",
          .format = CallbackFormat::kCallbackApi,
          .name = "close an order",
          .kafka_topic = "orders.late",
          .headers = kCarried};
}

TEST(JobOptions, NothingSaidTakesNoRoom) {
  EXPECT_EQ(encoded_options({}), "");
  EXPECT_EQ(decode_job_options(""), JobOptions{});
}

TEST(JobOptions, EachFieldComesBackAlone) {
  const JobOptions all = everything();
  for (const JobOptions& one :
       {JobOptions{.attempts = 0}, JobOptions{.backoff = all.backoff}, JobOptions{.lease = all.lease},
        JobOptions{.callback = all.callback}, JobOptions{.content_type = all.content_type},
        JobOptions{.method = all.method}, JobOptions{.format = all.format}, JobOptions{.name = all.name},
        JobOptions{.kafka_topic = all.kafka_topic}, JobOptions{.headers = all.headers}, all}) {
    const std::string bytes = encoded_options(one);
    EXPECT_EQ(decode_job_options(bytes), one);
  }
}

TEST(JobOptions, FieldsOfANewerServerArePassedOver) {
  std::string bytes;
  MsgpackWriter writer{bytes};
  writer.map(3);
  writer.uint(77);
  writer.array(1);
  writer.text("whatever");
  writer.uint(256);  // not to be taken for field 0
  writer.uint(9);
  writer.uint(2);
  writer.millis(Millis{700});
  EXPECT_EQ(decode_job_options(bytes), JobOptions{.lease = Millis{700}});
}

TEST(JobOptions, DamagedOrOutOfRangeMeansNothingSaid) {
  std::string bytes = encoded_options(everything());
  EXPECT_EQ(decode_job_options(std::string_view{bytes}.substr(0, bytes.size() - 1)), JobOptions{});
  EXPECT_EQ(decode_job_options(bytes + '\0'), JobOptions{});
  EXPECT_EQ(decode_job_options("hello"), JobOptions{});
  EXPECT_EQ(decode_job_options(encoded_options({.lease = Millis{1}})), JobOptions{})
      << "shorter than a lease may be";
}

TEST(JobOptions, ChecksNameTheField) {
  const std::string long_text(3'000, 'x');
  const std::pair<JobOptions, const char*> cases[] = {{{.attempts = 2'000'000}, "attempts"},
                                                      {{.backoff = StepBackoff{}}, "backoff"},
                                                      {{.lease = Millis{1}}, "lease"},
                                                      {{.callback = long_text}, "callback"},
                                                      {{.content_type = "a\nb"}, "content_type"},
                                                      {{.kafka_topic = "a b"}, "kafka_topic"},
                                                      {{.headers = "no headers"}, "headers"},
                                                      {{.callback_headers = "A: b"}, "callback_headers"},
                                                      {{.name = "a\nb"}, "name"}};
  for (const auto& [options, field] : cases) {
    const Status status = check_job_options(options);
    ASSERT_FALSE(status.ok()) << field;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(status.error().detail, HasSubstr(field));
  }
  EXPECT_TRUE(check_job_options(everything()).ok());
}

TEST(JobOptions, FlippedBitsNeverHarm) {
  const std::string good = encoded_options(everything());
  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random{kSeed};
  for (int round = 0; round < 10'000; ++round) {
    std::vector<char> bytes(good.begin(), good.end());
    for (uint64_t flips = random.between(1, 4); flips > 0; --flips) {
      char& byte = bytes[random.below(bytes.size())];
      byte = static_cast<char>(byte ^ (1 << random.below(8)));
    }
    const JobOptions options = decode_job_options({bytes.data(), bytes.size()});
    EXPECT_TRUE(check_job_options(options).ok());
  }
}

}  // namespace
}  // namespace delayq
