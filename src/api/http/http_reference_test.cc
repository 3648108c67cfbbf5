// The page is committed where users look for it. To write it anew:
//   DELAYQ_WRITE_TEXTS=1 build/dev/tests-bin/api_http_test --gtest_filter='HttpReference.*'
#include "api/http/http_reference.h"

#include <gtest/gtest.h>

#include "tests/support/committed_text.h"

namespace delayq::http {
namespace {

TEST(HttpReference, is_what_is_committed) { expect_committed("docs/reference/http.md", http_reference()); }

}  // namespace
}  // namespace delayq::http
