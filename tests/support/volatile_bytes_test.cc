#include "tests/support/volatile_bytes.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace delayq::support {
namespace {

std::vector<std::byte> filled(size_t size, char with) { return {size, static_cast<std::byte>(with)}; }

std::string text(std::span<const std::byte> bytes) {
  std::string out;
  for (std::byte byte : bytes) out.push_back(byte == std::byte{0} ? '.' : static_cast<char>(byte));
  return out;
}

/// One letter per sector; '!' where a sector is not all one letter.
std::string sectors(std::span<const std::byte> bytes) {
  const std::string all = text(bytes);
  std::string out;
  for (size_t at = 0; at < all.size(); at += kSectorBytes) {
    const std::string_view sector = std::string_view(all).substr(at, kSectorBytes);
    out.push_back(
        std::all_of(sector.begin(), sector.end(), [&](char c) { return c == sector[0]; }) ? sector[0] : '!');
  }
  return out;
}

TEST(VolatileBytes, ShowsWhatWasWrittenAndKeepsWhatWasSynced) {
  VolatileBytes file;
  file.write(2, filled(3, 'a'));
  EXPECT_EQ(text(file.cached()), "..aaa");
  EXPECT_EQ(text(file.durable()), "");
  EXPECT_TRUE(file.dirty());
  file.sync();
  EXPECT_EQ(text(file.durable()), "..aaa");
  file.resize(3);
  EXPECT_EQ(text(file.cached()), "..a");
  file.resize(5);
  EXPECT_EQ(text(file.cached()), "..a..");
  file.sync();
  EXPECT_EQ(text(file.durable()), "..a..");
  EXPECT_FALSE(file.dirty());
}

TEST(VolatileBytes, PowerCutLeavesSyncedBytesAlone) {
  Random random(1);
  VolatileBytes file;
  file.write(0, filled(5000, 'a'));
  file.sync();
  file.power_cut(random);
  EXPECT_EQ(text(file.cached()), std::string(5000, 'a'));
}

TEST(VolatileBytes, PowerCutGivesEveryMixtureOfWholeSectors) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    VolatileBytes file;
    file.write(0, filled(2 * kSectorBytes, 'a'));
    file.sync();
    file.write(0, filled(2 * kSectorBytes, 'b'));
    file.write(0, filled(2 * kSectorBytes, 'c'));
    file.power_cut(random);
    EXPECT_EQ(text(file.cached()), text(file.durable()));
    seen.insert(sectors(file.cached()));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"aa", "ab", "ac", "ba", "bb", "bc", "ca", "cb", "cc"}));
}

TEST(VolatileBytes, PowerCutMayLoseTheSizeOrKeepItWithoutTheBytes) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    VolatileBytes file;
    file.write(0, filled(kSectorBytes, 'a'));
    file.sync();
    file.resize(2 * kSectorBytes);
    file.write(kSectorBytes, filled(kSectorBytes, 'b'));
    file.power_cut(random);
    seen.insert(sectors(file.cached()));
  }
  EXPECT_EQ(seen, (std::set<std::string>{"a", "a.", "ab"}));
}

TEST(VolatileBytes, ACutFileMayComeBackWhole) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    VolatileBytes file;
    file.write(0, filled(2 * kSectorBytes, 'a'));
    file.sync();
    file.resize(kSectorBytes);
    file.power_cut(random);
    seen.insert(sectors(file.cached()));
  }
  EXPECT_TRUE(seen.contains("aa"));
  EXPECT_TRUE(seen.contains("a"));
  EXPECT_FALSE(seen.contains(""));
}

TEST(VolatileBytes, AppendsInsideOneSectorAreNeverTornWithinIt) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed);
    VolatileBytes file;
    file.resize(kSectorBytes);
    file.sync();
    for (uint64_t at = 0; at < 40; at += 10) file.write(at, filled(10, 'x'));
    file.power_cut(random);
    const std::string after = text(file.cached());
    const size_t end = after.find('.');
    EXPECT_EQ(end % 10, 0U) << "seed " << seed;
    EXPECT_EQ(after.find('x', end), std::string::npos) << "seed " << seed;
  }
}

TEST(VolatileBytes, AFailedSyncForgetsThatAnythingWasDirty) {
  bool lost = false;
  bool shown_but_lost = false;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    VolatileBytes file;
    file.write(0, filled(10, 'a'));
    file.fail_sync(random, seed % 2 == 0);
    EXPECT_FALSE(file.dirty());
    file.write(20, filled(10, 'b'));
    const bool shown = text(file.cached().first(10)) == std::string(10, 'a');
    file.sync();
    file.power_cut(random);
    EXPECT_EQ(text(file.cached().subspan(20)), std::string(10, 'b')) << "seed " << seed;
    const bool kept = text(file.cached().first(10)) == std::string(10, 'a');
    lost |= !kept;
    shown_but_lost |= shown && !kept;
    EXPECT_TRUE(shown || !kept) << "seed " << seed;
  }
  EXPECT_TRUE(lost);
  EXPECT_TRUE(shown_but_lost);
}

TEST(VolatileBytes, FlippedBitsSurvive) {
  Random random(1);
  VolatileBytes file;
  file.write(0, filled(4, 'a'));
  file.sync();
  file.flip_bit(2, 1);
  EXPECT_EQ(text(file.cached()), "aaca");
  file.power_cut(random);
  EXPECT_EQ(text(file.cached()), "aaca");
}

}  // namespace
}  // namespace delayq::support
