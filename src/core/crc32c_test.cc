#include "core/crc32c.h"

#include <array>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/random.h"

namespace delayq {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes random_bytes(Random& random, size_t size) {
  Bytes bytes(size);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.next());
  return bytes;
}

/// One bit at a time, straight from the definition.
uint32_t by_definition(uint32_t seed, const Bytes& bytes) {
  uint32_t crc = ~seed;
  for (unsigned char byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
  }
  return ~crc;
}

/// Every implementation of this machine.
class Crc32c : public testing::TestWithParam<crc32c_internal::Function> {
 protected:
  void SetUp() override {
    if (GetParam() == crc32c_internal::hardware && !crc32c_internal::hardware_available()) {
      GTEST_SKIP() << "this processor has no CRC-32C instruction";
    }
  }

  static uint32_t crc(const Bytes& bytes, uint32_t seed = 0) {
    return GetParam()(seed, bytes.data(), bytes.size());
  }
};

// RFC 3720, appendix B.4, and the check value of the CRC catalogues.
TEST_P(Crc32c, gives_the_published_values) {
  EXPECT_EQ(crc({}), 0U);
  EXPECT_EQ(crc({'1', '2', '3', '4', '5', '6', '7', '8', '9'}), 0xe3069283U);
  EXPECT_EQ(crc(Bytes(32, 0)), 0x8a9136aaU);
  EXPECT_EQ(crc(Bytes(32, 0xff)), 0x62a8ab43U);
  Bytes rising(32);
  std::iota(rising.begin(), rising.end(), static_cast<unsigned char>(0));
  EXPECT_EQ(crc(rising), 0x46dd794eU);
  EXPECT_EQ(crc(Bytes(rising.rbegin(), rising.rend())), 0x113fdb5cU);
}

TEST_P(Crc32c, agrees_with_the_definition_at_every_size_and_alignment) {
  Random random{11};
  const Bytes pool = random_bytes(random, 700);
  for (size_t size = 0; size < 640; ++size) {
    const size_t offset = size % 9;
    const Bytes bytes(pool.begin() + static_cast<ptrdiff_t>(offset),
                      pool.begin() + static_cast<ptrdiff_t>(offset + size));
    const auto seed = static_cast<uint32_t>(random.next());
    ASSERT_EQ(GetParam()(seed, pool.data() + offset, size), by_definition(seed, bytes)) << size << " bytes";
  }
}

TEST_P(Crc32c, agrees_with_the_definition_around_full_lanes) {
  Random random{12};
  for (size_t full : {3072U, 6144U, 10'000U}) {
    for (size_t size = full - 30; size < full + 130; size += 3) {
      const Bytes bytes = random_bytes(random, size);
      ASSERT_EQ(crc(bytes), by_definition(0, bytes)) << size << " bytes";
    }
  }
}

TEST_P(Crc32c, goes_on_where_it_was_left) {
  Random random{13};
  const Bytes whole = random_bytes(random, 1'500);
  for (int i = 0; i < 200; ++i) {
    const auto cut = static_cast<ptrdiff_t>(random.below(whole.size() + 1));
    const Bytes head(whole.begin(), whole.begin() + cut);
    const Bytes tail(whole.begin() + cut, whole.end());
    ASSERT_EQ(crc(tail, crc(head)), crc(whole)) << "cut at " << cut;
  }
}

TEST_P(Crc32c, sees_every_flipped_bit) {
  Random random{14};
  Bytes bytes = random_bytes(random, 200);
  const uint32_t right = crc(bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ (1U << (bit % 8)));
    ASSERT_NE(crc(bytes), right) << "bit " << bit;
    bytes[bit / 8] = static_cast<unsigned char>(bytes[bit / 8] ^ (1U << (bit % 8)));
  }
}

uint32_t dispatched(uint32_t seed, const void* data, size_t size) { return crc32c(seed, data, size); }

uint32_t dispatched_span(uint32_t seed, const void* data, size_t size) {
  return crc32c(seed, std::span{static_cast<const std::byte*>(data), size});
}

std::string name_of(const testing::TestParamInfo<crc32c_internal::Function>& parameter) {
  constexpr std::array kNames{"portable", "hardware", "dispatched", "dispatched_span"};
  return kNames.at(parameter.index);
}

INSTANTIATE_TEST_SUITE_P(Implementations, Crc32c,
                         testing::Values(&crc32c_internal::portable, &crc32c_internal::hardware, &dispatched,
                                         &dispatched_span),
                         name_of);

}  // namespace
}  // namespace delayq
