#include "app/storage.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_directory.h"

namespace delayq {
namespace {

using testing::HasSubstr;

constexpr Moment kNow{Millis{1'700'000'000'000}};

TEST(Storage, does_not_open_an_unfinished_backup) {
  const support::TemporaryDirectory folder;
  for (const std::string name : {"copy.partial", "copy.partial/", "x/../copy.partial"}) {
    StorageOptions options;
    options.directory = folder.path().string() + "/" + name;
    const auto opened = Storage::open(options, kNow);
    ASSERT_FALSE(opened.ok()) << name;
    EXPECT_EQ(opened.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(opened.error().detail, HasSubstr(name + " is an unfinished backup"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "copy.partial")) << "it was made";
  StorageOptions options;
  options.directory = folder / "partial";
  EXPECT_TRUE(Storage::open(options, kNow).ok());
}

}  // namespace
}  // namespace delayq
