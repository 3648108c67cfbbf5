#include "queue/msgpack.h"

#include <gmock/gmock.h>

#include "core/random.h"

namespace delayq {
namespace {

TEST(Msgpack, ReadsWhatWasWritten) {
  std::string bytes;
  MsgpackWriter writer{bytes};
  writer.map(2);
  writer.array(3);
  writer.uint(0);
  writer.uint(uint64_t{1} << 63);
  writer.millis(Millis{1'234'567});
  writer.number(0.25);
  writer.boolean(true);
  writer.text("grüße");
  writer.text(std::string(70'000, 'x'));

  MsgpackReader reader{bytes};
  EXPECT_EQ(reader.map(), 2U);
  EXPECT_EQ(reader.array(), 3U);
  EXPECT_EQ(reader.uint(), 0U);
  EXPECT_EQ(reader.uint(), uint64_t{1} << 63);
  EXPECT_EQ(reader.millis(), Millis{1'234'567});
  EXPECT_EQ(reader.number(), 0.25);
  EXPECT_TRUE(reader.boolean());
  EXPECT_EQ(reader.text(), "grüße");
  EXPECT_EQ(reader.text().size(), 70'000U);
  EXPECT_TRUE(reader.complete());
}

TEST(Msgpack, ReadsBackoffsOfBothKinds) {
  const Backoff steps = StepBackoff{{Millis{10}, Millis{0}, Millis{600'000}}};
  const Backoff exponential = ExponentialBackoff{Millis{1'000}, 1.5, Millis{60'000}, 0.3};
  std::string bytes;
  MsgpackWriter writer{bytes};
  writer.backoff(steps);
  writer.backoff(exponential);
  MsgpackReader reader{bytes};
  EXPECT_EQ(reader.backoff(), steps);
  EXPECT_EQ(reader.backoff(), exponential);
  EXPECT_TRUE(reader.complete());
}

TEST(Msgpack, AnotherTypeThanAskedForEndsTheReading) {
  std::string bytes;
  MsgpackWriter{bytes}.text("7");
  MsgpackReader reader{bytes};
  EXPECT_EQ(reader.uint(), 0U);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.text(), "") << "after the first mistake everything reads as nothing";
}

TEST(Msgpack, NumbersTooBigForTheirTypeAreRejected) {
  std::string bytes;
  MsgpackWriter{bytes}.uint(uint64_t{1} << 32);
  MsgpackReader as_uint32{bytes};
  EXPECT_EQ(as_uint32.uint32(), 0U);
  EXPECT_FALSE(as_uint32.ok());

  bytes.clear();
  MsgpackWriter{bytes}.uint(uint64_t{1} << 63);
  MsgpackReader as_millis{bytes};
  EXPECT_EQ(as_millis.millis(), Millis{0});
  EXPECT_FALSE(as_millis.ok());
}

TEST(Msgpack, EveryCutIsNoticed) {
  std::string bytes;
  MsgpackWriter writer{bytes};
  writer.array(2);
  writer.text("a text of some length, longer than thirty-two bytes");
  writer.backoff(ExponentialBackoff{});
  for (size_t size = 0; size < bytes.size(); ++size) {
    // A copy of exactly that size, so that the sanitizer detects a read past its end.
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    MsgpackReader reader{{cut.data(), cut.size()}};
    reader.array();
    reader.text();
    reader.backoff();
    EXPECT_FALSE(reader.complete()) << "cut to " << size;
  }
}

TEST(Msgpack, SkipsOneValueOfAnyType) {
  std::string bytes;
  MsgpackWriter writer{bytes};
  writer.array(2);
  writer.backoff(ExponentialBackoff{});
  writer.text("inner");
  writer.uint(9);
  MsgpackReader reader{bytes};
  reader.skip();
  EXPECT_EQ(reader.uint(), 9U);
  EXPECT_TRUE(reader.complete());
}

TEST(Msgpack, NoiseNeverReadsOutsideItsBytes) {
  constexpr uint64_t kSeed = 20'240'611;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random{kSeed};
  for (int round = 0; round < 20'000; ++round) {
    std::vector<char> noise(random.below(24));
    for (char& byte : noise) byte = static_cast<char>(random.next());
    MsgpackReader reader{{noise.data(), noise.size()}};
    while (reader.ok()) {
      switch (random.below(8)) {
        case 0:
          reader.map();
          break;
        case 1:
          reader.array();
          break;
        case 2:
          reader.uint();
          break;
        case 3:
          reader.number();
          break;
        case 4:
          reader.boolean();
          break;
        case 5:
          reader.text();
          break;
        case 6:
          reader.backoff();
          break;
        default:
          reader.skip();
          break;
      }
    }
    EXPECT_FALSE(reader.complete());
  }
}

}  // namespace
}  // namespace delayq
