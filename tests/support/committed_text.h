#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace delayq {

/// For texts that are made by the program and committed where users look for them: fails when the file
/// `name`, from the top of the repository, is not `text`. With DELAYQ_WRITE_TEXTS in the environment it
/// writes the file instead. The target needs the definition DELAYQ_SOURCE_FOLDER.
inline void expect_committed(const std::string& name, const std::string& text) {
  const std::string path = std::string(DELAYQ_SOURCE_FOLDER) + "/" + name;
  if (std::getenv("DELAYQ_WRITE_TEXTS") != nullptr) std::ofstream(path, std::ios::binary) << text;
  std::ifstream in(path, std::ios::binary);
  const std::string committed{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  EXPECT_EQ(committed, text) << name << " is stale; run this test with DELAYQ_WRITE_TEXTS=1 to write it";
}

}  // namespace delayq
