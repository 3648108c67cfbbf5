#include "core/crc32c.h"

#include <array>

#include "core/encoding.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace delayq::crc32c_internal {

namespace {

/// The polynomial with its bits reflected, as everything below: the lowest bit is the highest power of x.
constexpr uint32_t kPolynomial = 0x82f63b78;

constexpr uint32_t times_x(uint32_t value) { return (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0); }

using ByteTable = std::array<uint32_t, 256>;

/// tables[k][b] is the remainder of byte b followed by k zero bytes.
constexpr std::array<ByteTable, 8> make_tables() {
  std::array<ByteTable, 8> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = times_x(value);
    tables[0][byte] = value;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  }
  return tables;
}

constexpr auto kTables = make_tables();

}  // namespace

uint32_t portable(uint32_t seed, const void* data, size_t size) {
  const auto* at = static_cast<const unsigned char*>(data);
  uint32_t crc = ~seed;
  for (; size >= 8; size -= 8, at += 8) {
    const uint64_t word = load_le<uint64_t>(at) ^ crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kTables[7 - i][(word >> (8 * i)) & 0xff];
  }
  for (; size > 0; --size, ++at) crc = (crc >> 8) ^ kTables[0][(crc ^ *at) & 0xff];
  return ~crc;
}

#if defined(__x86_64__)

namespace {

/// The CRC instruction takes three cycles but a new one can start every cycle, so long inputs are cut into
/// three lanes that run side by side and are joined at the end. A lane is at most this many words of 8 bytes.
constexpr size_t kMaxLaneWords = 128;

/// Below this many bytes the join costs more than the lanes save.
constexpr size_t kMinLanesBytes = 96;

/// kShift[w] moves a remainder over w words of zeros: x^(64 w - 33) mod P. Of the 33, 32 are made good by the
/// CRC instruction that reduces the carry-less product, and 1 by reflection (a product of two reflected
/// values is short by one shift).
constexpr std::array<uint32_t, 2 * kMaxLaneWords + 1> make_shifts() {
  std::array<uint32_t, 2 * kMaxLaneWords + 1> shifts{};
  uint32_t power = 0x80000000;  // x^0
  for (int i = 0; i < 64 - 33; ++i) power = times_x(power);
  for (size_t words = 1; words < shifts.size(); ++words) {
    shifts[words] = power;
    for (int i = 0; i < 64; ++i) power = times_x(power);
  }
  return shifts;
}

constexpr auto kShift = make_shifts();

__attribute__((target("sse4.2,pclmul"), always_inline)) inline uint64_t shifted(uint64_t crc, size_t words) {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<int64_t>(crc)),
                                               _mm_cvtsi64_si128(static_cast<int64_t>(kShift[words])), 0);
  return static_cast<uint64_t>(_mm_cvtsi128_si64(product));
}

/// Three lanes of `words` words each, from `at`. REQUIRES: 1 <= words <= kMaxLaneWords.
__attribute__((target("sse4.2,pclmul"), always_inline)) inline uint64_t three_lanes(uint64_t crc,
                                                                                    const unsigned char* at,
                                                                                    size_t words) {
  const size_t lane = words * 8;
  const unsigned char* const last = at + lane - 8;
  uint64_t first = crc;
  uint64_t second = 0;
  uint64_t third = 0;
  for (; at != last; at += 8) {
    first = _mm_crc32_u64(first, load_le<uint64_t>(at));
    second = _mm_crc32_u64(second, load_le<uint64_t>(at + lane));
    third = _mm_crc32_u64(third, load_le<uint64_t>(at + 2 * lane));
  }
  first = _mm_crc32_u64(first, load_le<uint64_t>(at));
  second = _mm_crc32_u64(second, load_le<uint64_t>(at + lane));
  // The two products are reduced together with the third lane's last word.
  const uint64_t join = shifted(first, 2 * words) ^ shifted(second, words);
  return _mm_crc32_u64(third, load_le<uint64_t>(at + 2 * lane) ^ join);
}

}  // namespace

__attribute__((target("sse4.2,pclmul"))) uint32_t hardware(uint32_t seed, const void* data, size_t size) {
  const auto* at = static_cast<const unsigned char*>(data);
  uint64_t crc = ~seed;
  while (size >= kMinLanesBytes) {
    const size_t words = size / 24 < kMaxLaneWords ? size / 24 : kMaxLaneWords;
    crc = three_lanes(crc, at, words);
    at += words * 24;
    size -= words * 24;
  }
  for (; size >= 8; size -= 8, at += 8) crc = _mm_crc32_u64(crc, load_le<uint64_t>(at));
  auto narrow = static_cast<uint32_t>(crc);
  if ((size & 4) != 0) {
    narrow = _mm_crc32_u32(narrow, load_le<uint32_t>(at));
    at += 4;
  }
  if ((size & 2) != 0) {
    narrow = _mm_crc32_u16(narrow, load_le<uint16_t>(at));
    at += 2;
  }
  if ((size & 1) != 0) narrow = _mm_crc32_u8(narrow, *at);
  return ~narrow;
}

bool hardware_available() {
  __builtin_cpu_init();  // needed when called before constructors have run
  return __builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0;
}

#else

uint32_t hardware(uint32_t seed, const void* data, size_t size) { return portable(seed, data, size); }
bool hardware_available() { return false; }

#endif

namespace {

uint32_t choose(uint32_t seed, const void* data, size_t size) {
  const Function function = hardware_available() ? hardware : portable;
  chosen.store(function, std::memory_order_relaxed);
  return function(seed, data, size);
}

}  // namespace

constinit std::atomic<Function> chosen{choose};

}  // namespace delayq::crc32c_internal
