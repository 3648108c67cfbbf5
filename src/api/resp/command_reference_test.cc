// The page is committed where users look for it. To write it anew:
//   DELAYQ_WRITE_TEXTS=1 build/dev/tests-bin/api_resp_test --gtest_filter='CommandReference.*'
#include <gtest/gtest.h>

#include "api/resp/command_table.h"
#include "tests/support/committed_text.h"

namespace delayq::resp {
namespace {

TEST(CommandReference, is_what_is_committed) {
  expect_committed("docs/reference/resp.md", command_reference());
}

}  // namespace
}  // namespace delayq::resp
