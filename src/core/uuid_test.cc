#include <set>
#include <string>

#include <gtest/gtest.h>

#include "core/random.h"

namespace delayq {
namespace {

std::string text_of(const Uuid& uuid) {
  std::string text(kUuidTextSize, '?');
  format_uuid(uuid, std::span<char, kUuidTextSize>{text.data(), kUuidTextSize});
  return text;
}

uint64_t ms_of(const Uuid& uuid) {
  uint64_t ms = 0;
  for (size_t i = 0; i < 6; ++i) ms = (ms << 8) | uuid[i];
  return ms;
}

TEST(Uuid, is_written_in_five_groups) {
  // The example of RFC 9562, appendix A.6.
  const Uuid uuid{0x01, 0x7f, 0x22, 0xe2, 0x79, 0xb0, 0x7c, 0xc3,
                  0x98, 0xc4, 0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f};
  EXPECT_EQ(text_of(uuid), "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
}

TEST(Uuid, carries_time_version_and_variant) {
  UuidGenerator generator{Random{1}};
  for (int64_t ms : {int64_t{1}, int64_t{1'645'557'742'000}, (int64_t{1} << 48) - 1}) {
    const Uuid uuid = generator.next(from_unix_ms(ms));
    EXPECT_EQ(ms_of(uuid), static_cast<uint64_t>(ms));
    EXPECT_EQ(uuid[6] >> 4, 7);
    EXPECT_EQ(uuid[8] >> 6, 2);
  }
}

TEST(Uuid, grows_within_a_millisecond) {
  UuidGenerator generator{Random{2}};
  const Moment now = from_unix_ms(1'700'000'000'000);
  Uuid last = generator.next(now);
  for (int i = 0; i < 100'000; ++i) {
    const Uuid uuid = generator.next(now);
    ASSERT_LT(last, uuid);
    ASSERT_LT(text_of(last), text_of(uuid));
    last = uuid;
  }
  EXPECT_EQ(ms_of(last), 1'700'000'000'000U);
}

TEST(Uuid, grows_when_the_clock_goes_back) {
  UuidGenerator generator{Random{3}};
  Random clock{4};
  Uuid last = generator.next(from_unix_ms(1'000'000));
  for (int i = 0; i < 10'000; ++i) {
    const Uuid uuid = generator.next(from_unix_ms(static_cast<int64_t>(clock.below(2'000'000)) - 5));
    ASSERT_LT(last, uuid);
    last = uuid;
  }
}

TEST(Uuid, carries_from_the_low_random_bits_to_the_high_ones) {
  const Uuid last{0, 0, 0, 0, 0, 5, 0x71, 0x23, 0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  const Uuid next = UuidGenerator{Random{5}, last}.next(from_unix_ms(5));
  EXPECT_LT(last, next);
  EXPECT_EQ(text_of(next).substr(0, 24), "00000000-0005-7124-8000-");
}

TEST(Uuid, uses_the_random_bits_to_the_end) {
  const Uuid last{0, 0, 0, 0, 0, 5, 0x7f, 0xfe, 0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  const Uuid next = UuidGenerator{Random{5}, last}.next(from_unix_ms(5));
  EXPECT_EQ(text_of(next).substr(0, 24), "00000000-0005-7fff-8000-");
}

TEST(Uuid, a_moment_beyond_48_bits_is_the_last_one) {
  EXPECT_EQ(ms_of(UuidGenerator{Random{7}}.next(from_unix_ms(int64_t{1} << 48))), (uint64_t{1} << 48) - 1);
  EXPECT_EQ(ms_of(UuidGenerator{Random{7}}.next(kNever)), (uint64_t{1} << 48) - 1);
}

TEST(Uuid, moves_to_the_next_millisecond_when_the_random_bits_run_out) {
  const Uuid last{0, 0, 0, 0, 0, 5, 0x7f, 0xff, 0xbf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  UuidGenerator generator{Random{6}, last};
  const Uuid next = generator.next(from_unix_ms(5));
  EXPECT_LT(last, next);
  EXPECT_EQ(ms_of(next), 6U);
  EXPECT_LT(next, generator.next(from_unix_ms(5)));
}

TEST(Uuid, generators_with_other_seeds_do_not_meet) {
  std::set<Uuid> seen;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    UuidGenerator generator{Random{seed}};
    for (int i = 0; i < 200; ++i) seen.insert(generator.next(from_unix_ms(1'700'000'000'000)));
  }
  EXPECT_EQ(seen.size(), 50U * 200U);
}

TEST(Uuid, a_seed_replays) {
  UuidGenerator first{Random{9}};
  UuidGenerator again{Random{9}};
  for (int64_t ms = 0; ms < 100; ++ms)
    ASSERT_EQ(first.next(from_unix_ms(ms / 3)), again.next(from_unix_ms(ms / 3)));
}

}  // namespace
}  // namespace delayq
