#include <array>
#include <cstdint>

#include <gtest/gtest.h>

#include "core/encoding.h"

namespace delayq {
namespace {

TEST(LittleEndian, lowest_byte_comes_first) {
  std::array<unsigned char, 9> bytes{};
  store_le<uint64_t>(bytes.data() + 1, 0x0807060504030201U);  // on purpose not aligned
  EXPECT_EQ(bytes, (std::array<unsigned char, 9>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(load_le<uint64_t>(bytes.data() + 1), 0x0807060504030201U);
  EXPECT_EQ(load_le<uint32_t>(bytes.data() + 3), 0x06050403U);
  EXPECT_EQ(load_le<uint16_t>(bytes.data() + 5), 0x0605U);
  EXPECT_EQ(load_le<uint8_t>(bytes.data() + 7), 7U);
}

TEST(LittleEndian, stores_only_its_own_bytes) {
  std::array<unsigned char, 4> bytes{9, 9, 9, 9};
  store_le<uint16_t>(bytes.data() + 1, 0xabcd);
  EXPECT_EQ(bytes, (std::array<unsigned char, 4>{9, 0xcd, 0xab, 9}));
}

}  // namespace
}  // namespace delayq
