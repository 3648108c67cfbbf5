#include "queue/carried_record.h"

#include <gmock/gmock.h>

#include "core/random.h"

namespace delayq {
namespace {

using testing::HasSubstr;

std::string encoded(const CarriedRecord& record) {
  std::string bytes;
  EXPECT_TRUE(encode_carried_record(record, bytes).ok());
  return bytes;
}

TEST(CarriedRecord, EverythingComesBack) {
  CarriedRecord none;
  CarriedRecord empty_key;
  empty_key.key = "";
  CarriedRecord tombstone;
  tombstone.key = "k";
  tombstone.is_tombstone = true;
  CarriedRecord headers;
  headers.headers = {{"a", "1"}, {"a", "2"}, {"empty", ""}, {"none", std::nullopt}, {"", "\xff\x00"}};
  for (const CarriedRecord& each : {none, empty_key, tombstone, headers}) {
    const std::string bytes = encoded(each);
    EXPECT_FALSE(bytes.empty());
    EXPECT_EQ(decode_carried_record(bytes), each);
  }
}

TEST(CarriedRecord, AboveTheBoundsIsRefusedAndNothingIsWritten) {
  const std::string large(kCarriedBytes, 'x');
  CarriedRecord record;
  record.key = large;
  std::string bytes = "before";
  Status status = encode_carried_record(record, bytes);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kTooLarge);
  EXPECT_THAT(status.error().detail, HasSubstr("32768"));
  EXPECT_EQ(bytes, "before");

  record.key.reset();
  record.headers.resize(kCarriedHeaders + 1);
  status = encode_carried_record(record, bytes);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kTooLarge);
  record.headers.pop_back();
  EXPECT_TRUE(encode_carried_record(record, bytes).ok());
}

TEST(CarriedRecord, OtherBytesAreNoRecord) {
  CarriedRecord record;
  record.key = "key";
  record.headers = {{"name", "value"}, {"none", std::nullopt}};
  const std::string bytes = encoded(record);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_carried_record(bytes.substr(0, size))) << size;
  EXPECT_FALSE(decode_carried_record(bytes + "x"));
  EXPECT_FALSE(decode_carried_record("\x91\x04"));       // a flag that is not known
  EXPECT_FALSE(decode_carried_record("\x91\x01"));       // a key is announced
  EXPECT_FALSE(decode_carried_record("\x92\x02\xa1n"));  // a name without a value
  EXPECT_FALSE(decode_carried_record(std::string_view("\x93\x02\xa1n\xc3", 5)));

  constexpr uint64_t kSeed = 7;
  Random random(kSeed);
  for (int i = 0; i < 10'000; ++i) {
    std::string damaged = bytes;
    damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    (void)decode_carried_record(damaged);  // must not read outside: the sanitizers look
  }
}

}  // namespace
}  // namespace delayq
