// The page is committed where users look for it. To write it anew:
//   DELAYQ_WRITE_TEXTS=1 build/dev/tests-bin/api_http_test --gtest_filter='HttpReference.*'
#include "api/http/http_reference.h"

#include <cstdlib>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

namespace delayq::http {
namespace {

TEST(HttpReference, is_what_is_committed) {
  const std::string path = std::string(DELAYQ_SOURCE_FOLDER) + "/docs/reference/http.md";
  const std::string text = http_reference();
  if (std::getenv("DELAYQ_WRITE_TEXTS") != nullptr) std::ofstream(path, std::ios::binary) << text;
  std::ifstream in(path, std::ios::binary);
  const std::string committed{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  EXPECT_EQ(committed, text) << "stale; the first lines of this file say how to write it";
}

}  // namespace
}  // namespace delayq::http
