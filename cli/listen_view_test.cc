#include <gtest/gtest.h>

#include "cli/receiver.h"

namespace delayq::cli {
namespace {

const Moment kListenNow = from_unix_ms(1'896'076'800'123);

ReceivedRequest example() {
  ReceivedRequest request;
  request.method = "POST";
  request.target = "/hooks/order";
  request.headers = {
      {"Host", "x"}, {"DelayQ-Topic", "order"}, {"delayq-job-id", "order:1"}, {"delayq-attempt", "2"}};
  request.body = R"({"uid":1})";
  return request;
}

TEST(ListenView, OneLineForPeople) {
  EXPECT_EQ(call_for_people(example(), signing::Verdict::kVerified, kListenNow),
            R"(08:00:00.123 POST /hooks/order  topic=order job-id=order:1 attempt=2  verified  {"uid":1})");
  ReceivedRequest plain;
  plain.method = "GET";
  plain.target = "/";
  EXPECT_EQ(call_for_people(plain, signing::Verdict::kUnsigned, kListenNow), "08:00:00.123 GET /  unsigned");
}

TEST(ListenView, NothingThatATerminalWouldObey) {
  ReceivedRequest request = example();
  request.target = "/\x1b[2J";
  request.body = "a\nb\x1b[31m";
  request.headers = {{"delayq-topic", "\x1b]0;x\x07"}};
  const std::string line = call_for_people(request, signing::Verdict::kBad, kListenNow);
  EXPECT_EQ(line.find_first_of("\x1b\n\x07"), std::string::npos) << line;
  EXPECT_NE(line.find("BAD signature"), std::string::npos);
}

TEST(ListenView, AllOfItForPrograms) {
  EXPECT_EQ(
      call_for_programs(example(), signing::Verdict::kOutOfTime, kListenNow),
      R"({"at":"2030-01-31T08:00:00.123Z","method":"POST","path":"/hooks/order","verdict":"out of time",)"
      R"("headers":{"host":"x","delayq-topic":"order","delayq-job-id":"order:1","delayq-attempt":"2"},)"
      R"("body":"{\"uid\":1}"})");
}

}  // namespace
}  // namespace delayq::cli
