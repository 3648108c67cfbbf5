#include "engine/journal/lease_text.h"

#include <algorithm>

namespace delayq::journal {

namespace {

/// Base 32 without the letters that look like digits.
constexpr std::string_view kAlphabet = "0123456789abcdefghjkmnpqrstvwxyz";
constexpr size_t kSeqDigits = 10;    // 48 bits
constexpr size_t kLeaseDigits = 13;  // 64 bits

constexpr std::array<int8_t, 256> kValues = [] {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kAlphabet.size(); ++i)
    values[static_cast<uint8_t>(kAlphabet[i])] = static_cast<int8_t>(i);
  return values;
}();

void write(uint64_t value, char* out, size_t digits) {
  for (size_t i = digits; i-- > 0; value >>= 5) out[i] = kAlphabet[value & 31];
}

struct Digits {
  uint64_t value = 0;
  int8_t signs = 0;  ///< negative when a letter is not a digit
};

Digits read(std::string_view text) {
  Digits read;
  for (const char letter : text) {
    const int8_t digit = kValues[static_cast<uint8_t>(letter)];
    read.signs = static_cast<int8_t>(read.signs | digit);
    read.value = read.value << 5 | (static_cast<uint64_t>(digit) & 31);
  }
  return read;
}

}  // namespace

LeaseText format_lease(const LeaseNumber& number) {
  LeaseText text;
  write(number.seq, text.data(), kSeqDigits);
  write(number.lease, text.data() + kSeqDigits, kLeaseDigits);
  return text;
}

std::optional<LeaseNumber> parse_lease(std::string_view text) {
  if (text.size() != std::tuple_size_v<LeaseText>) return std::nullopt;
  const Digits seq = read(text.substr(0, kSeqDigits));
  const Digits lease = read(text.substr(kSeqDigits));
  if ((seq.signs | lease.signs) < 0) return std::nullopt;
  // Each lease has exactly one text: digits that do not fit are rejected, not ignored.
  constexpr uint64_t kSeqEnd = uint64_t{1} << 48;
  constexpr int8_t kFirstLeaseDigitEnd = 1 << (64 - 5 * (kLeaseDigits - 1));
  const bool fits =
      seq.value < kSeqEnd && kValues[static_cast<uint8_t>(text[kSeqDigits])] < kFirstLeaseDigitEnd;
  return fits ? std::optional(LeaseNumber{seq.value, lease.value}) : std::nullopt;
}

}  // namespace delayq::journal
