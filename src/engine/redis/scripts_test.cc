// Every script has a contract and tests.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace delayq::redis {
namespace {

namespace fs = std::filesystem;

fs::path folder() { return fs::path(DELAYQ_SOURCE_FOLDER) / "src/engine/redis"; }

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// All scripts except the preludes.
std::vector<std::string> script_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder() / "scripts")) {
    const std::string name = entry.path().stem().string();
    if (entry.path().extension() == ".lua" && !name.starts_with("prelude")) names.push_back(name);
  }
  return names;
}

/// redrive_oldest -> kRedriveOldest
std::string constant_of(std::string_view script) {
  std::string constant = "k";
  bool begins_word = true;
  for (const char letter : script) {
    if (letter != '_') constant += static_cast<char>(begins_word ? std::toupper(letter) : letter);
    begins_word = letter == '_';
  }
  return constant;
}

TEST(Scripts, SayWhatTheyAreGivenAndWhatTheyAnswer) {
  ASSERT_GE(script_names().size(), 20U);
  for (const std::string& name : script_names()) {
    const std::string text = text_of(folder() / "scripts" / (name + ".lua"));
    EXPECT_EQ(text.find("-- "), 0U) << name << " begins with what it is for";
    for (const char* part : {"\n-- KEYS  ", "\n-- ARGV  ", "\n-- RETURNS "})
      EXPECT_NE(text.find(part), std::string::npos) << name << " has no" << part;
  }
}

TEST(Scripts, AreAllNamedAndTested) {
  const std::string named = text_of(folder() / "scripts.h");
  std::string tests;
  for (const auto& entry : fs::directory_iterator(folder())) {
    if (entry.path().filename().string().ends_with("_scripts_test.cc")) tests += text_of(entry.path());
  }
  tests += text_of(fs::path(DELAYQ_SOURCE_FOLDER) / "tests/support/redis_scripts.h");
  tests += text_of(fs::path(DELAYQ_SOURCE_FOLDER) / "tests/support/redis_life_scripts.h");
  for (const std::string& name : script_names()) {
    const std::string constant = constant_of(name);
    EXPECT_NE(named.find(fmt::format("Script {}{{\"{}\"", constant, name)), std::string::npos)
        << name << " is not in scripts.h";
    // With the comma: a test of kRedriveOldest is no test of kRedrive.
    const bool is_tested = tests.find(fmt::format("scripts::{},", constant)) != std::string::npos;
    EXPECT_TRUE(is_tested) << name << " has no test of its own";
  }
}

TEST(Scripts, HaveAllTheirCommandsTriedByRights) {
  const std::string rights = text_of(folder() / "scripts" / "rights.lua");
  size_t commands = 0;
  for (const auto& entry : fs::directory_iterator(folder() / "scripts")) {
    const std::string text = text_of(entry.path());
    constexpr std::string_view kCall = "call('";
    for (size_t at = text.find(kCall); at != std::string::npos; at = text.find(kCall, at + 1)) {
      const size_t begin = at + kCall.size();
      const std::string command = text.substr(begin, text.find('\'', begin) - begin);
      EXPECT_NE(rights.find(fmt::format("{{'{}'", command)), std::string::npos)
          << command << " of " << entry.path() << " is not in rights.lua";
      ++commands;
    }
  }
  EXPECT_GT(commands, 50U);
}

}  // namespace
}  // namespace delayq::redis
