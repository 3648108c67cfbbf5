// The parts of the library that need no server.
#include <random>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "sdk/cpp/src/net_pipe.h"
#include "sdk/cpp/src/pipe.h"
#include "sdk/cpp/src/resp.h"
#include "sdk/cpp/tests/json.h"
#include "sdk/cpp/tests/support.h"

namespace delayq::sdk {
namespace {

TEST(Replies, AreReadAsTheTableSays) {
  const auto table =
      sdk_test::Json::parse(sdk_test::read_file(DELAYQ_SOURCE_FOLDER "/sdk/spec/replies.json"));
  ASSERT_GT(table.find("replies")->items.size(), 10U);
  for (const sdk_test::Json& row : table.find("replies")->items) {
    const std::string line = row.find("line")->text + "\r\n";
    std::string_view input = line;
    Value value;
    ASSERT_EQ(take_value(input, value), Taken::kValue) << line;
    ASSERT_TRUE(value.is_error());
    const Error error = error_of(value.text);
    EXPECT_EQ(name_of(error.code()), row.find("code")->text) << line;
    EXPECT_EQ(error.what(), row.find("message")->text) << line;
    EXPECT_EQ(error.retryable(), row.find("retryable")->boolean) << line;
    const auto* const after = row.find("retry_after");
    EXPECT_EQ(error.retry_after().has_value(), !after->is_null()) << line;
    if (error.retry_after()) {
      EXPECT_EQ(static_cast<double>(error.retry_after()->count()), after->number) << line;
    }
  }
}

TEST(Replies, MayComeInParts) {
  const std::string reply = "*3\r\n$5\r\nhe\r\no\r\n%1\r\n+a\r\n:-7\r\n*2\r\n_\r\n$0\r\n\r\n";
  ReplyScan scan;
  for (std::size_t size = 0; size < reply.size(); ++size) {
    std::string_view part = std::string_view(reply).substr(0, size);
    Value value;
    EXPECT_EQ(take_value(part, value), Taken::kPartial) << size;
    EXPECT_EQ(scan.advance(std::string_view(reply).substr(0, size)), Taken::kPartial) << size;
  }
  EXPECT_EQ(scan.advance(reply), Taken::kValue);
  std::string_view input = reply;
  Value value;
  ASSERT_EQ(take_value(input, value), Taken::kValue);
  EXPECT_TRUE(input.empty());
  EXPECT_EQ(value.items.at(0).text, "he\r\no");
  EXPECT_EQ(value.items.at(1).number_of("a"), -7);
  EXPECT_TRUE(value.items.at(2).items.at(0).is_null());
}

TEST(Replies, WhatIsNoneIsBroken) {
  for (const std::string_view bytes :
       {"x\r\n", "$-2\r\n", "$99999999999999\r\n", ":a\r\n", "*9999999999\r\n", "a\n", "$1\r\nabc"}) {
    std::string_view input = bytes;
    Value value;
    EXPECT_EQ(take_value(input, value), Taken::kBroken) << bytes;
  }
  std::string nested;
  for (int i = 0; i < 40; ++i) nested += "*1\r\n";
  std::string_view input = nested;
  Value value;
  EXPECT_EQ(take_value(input, value), Taken::kBroken);
  EXPECT_EQ(ReplyScan().advance(nested), Taken::kBroken);
}

TEST(Replies, RandomBytesDoNoHarm) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  constexpr std::string_view kBytes = "*%$:+-_#~>=,0123459\r\n\r\n\r\nab";
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes;
    for (auto i = random() % 40; i > 0; --i) bytes += kBytes[random() % kBytes.size()];
    std::string_view input = bytes;
    ReplyScan scan;
    const Taken scanned = scan.advance(bytes);
    Value value;
    const Taken taken = take_value(input, value);
    // What the scan takes for whole is whole, and what is broken for it is broken.
    if (scanned == Taken::kValue) {
      EXPECT_NE(taken, Taken::kPartial) << bytes;
    }
    if (taken == Taken::kValue) {
      EXPECT_EQ(scanned, Taken::kValue) << bytes;
    }
  }
}

TEST(Durations, AreReadAsServersWriteThem) {
  EXPECT_EQ(parse_duration("1h30m"), 90min);
  EXPECT_EQ(parse_duration("1.5s"), 1500ms);
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("7d"), 168h);
  for (const std::string_view text : {"", "5", "h", "-1s", "a while", "1y"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Ids, AreOfVersion7AndDiffer) {
  std::set<std::string> ids;
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = make_id();
    ASSERT_EQ(id.size(), 36U);
    EXPECT_EQ(id[14], '7');
    EXPECT_NE(std::string_view("89ab").find(id[19]), std::string_view::npos);
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 10'000U);
}

TEST(Ids, OfAChildAreNotThoseOfItsParent) {
  make_id();
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string id = make_id();
    [[maybe_unused]] const ssize_t written = ::write(ends[1], id.data(), id.size());
    ::_exit(0);
  }
  const std::string own = make_id();
  char theirs[36];
  ASSERT_EQ(::read(ends[0], theirs, sizeof(theirs)), 36);
  // The time in front may be the same; the random part is not.
  EXPECT_NE(own.substr(15), std::string(theirs + 15, 21));
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Reasons, AreCleanAndShort) {
  EXPECT_EQ(clean_reason("one\atwo\nthree\tfour\x7F\xC2\x85!"), "one two\nthree\tfour  !");
  EXPECT_EQ(clean_reason("\xFFx\xC3"), "\xEF\xBF\xBDx\xEF\xBF\xBD");
  EXPECT_EQ(clean_reason("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  std::string euros;
  for (int i = 0; i < 1000; ++i) euros += "€";
  EXPECT_EQ(clean_reason(euros), euros.substr(0, 999));
}

TEST(Addresses, HaveAHostAndAPort) {
  EXPECT_EQ(parse_address("shop:99").port, "99");
  EXPECT_EQ(parse_address("shop").port, "9278");
  EXPECT_EQ(parse_address("[::1]:5").host, "::1");
  EXPECT_EQ(parse_address("[::1]").host, "::1");
  for (const std::string_view text : {"", ":1", "a:", "a:b", "a:0", "a:65536"})
    EXPECT_THROW(parse_address(text), Error) << text;
}

/// A call that notes what becomes of it.
class Noted final : public Call {
 public:
  explicit Noted(std::vector<std::string>& notes, std::uint32_t count = 1) : notes_(notes) {
    commands = count;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::string number = std::to_string(i);
      Words words;
      words << "PING" << number;
      words.append_to(bytes);
    }
    retry_until = Steady::time_point::max();
  }
  void on_reply(std::uint32_t index, Value&& value) override {
    notes_.push_back(std::to_string(index) + ":" + value.text);
  }
  void on_failure(std::uint32_t index, const Error& error) override {
    notes_.push_back(std::to_string(index) + "!" + std::string(name_of(error.code())));
  }

 private:
  std::vector<std::string>& notes_;
};

class FlightTest : public testing::Test {
 protected:
  void feed(std::string_view bytes) { EXPECT_TRUE(flight.feed(bytes, now, again)); }

  using Notes = std::vector<std::string>;
  Notes notes;
  int ended = 0;
  Flight flight{[this](const std::unique_ptr<Call>&) { ++ended; }};
  Flight::Again again;
  const Steady::time_point now{};
};

TEST_F(FlightTest, RepliesGoToTheirCalls) {
  flight.add(std::make_unique<Noted>(notes, 2), now);
  flight.add(std::make_unique<Noted>(notes), now);
  feed("+a\r\n$1\r\nb\r\n:3\r\n");
  EXPECT_EQ(notes, (Notes{"0:a", "1:b", "0:"}));
  EXPECT_EQ(ended, 2);
  std::string_view unasked = "+x\r\n";
  EXPECT_FALSE(flight.feed(unasked, now, again));
}

TEST_F(FlightTest, WhatIsRefusedForNowIsSentAgainAloneAndLater) {
  flight.add(std::make_unique<Noted>(notes, 3), now);
  feed("+a\r\n-OVERLOADED full (try again in 1s)\r\n-INVALID no\r\n");
  EXPECT_EQ(notes, (Notes{"0:a", "2:INVALID no"}));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0]->bytes, "*2\r\n$4\r\nPING\r\n$1\r\n1\r\n");
  EXPECT_EQ(Flight::not_before(*again[0]), now + 1s);
  flight.add(std::move(again[0]), now);
  feed("+b\r\n");
  EXPECT_EQ(notes.back(), "1:b");
  EXPECT_EQ(ended, 1);
}

TEST_F(FlightTest, JobsWithoutWordsThatAreRefusedForNowAreTheOnlyOnesLeft) {
  auto call = std::make_unique<Noted>(notes, 4);
  call->bytes = "abcd";
  for (std::size_t i = 0; i < 4; ++i) call->jobs.push_back({.begin = i, .topic = 1});
  flight.pushed(std::move(call),
                {{1, "OVERLOADED full (try again in 1s)"}, {2, "INVALID no"}, {3, "OVERLOADED full"}}, now,
                again);
  EXPECT_EQ(notes, (Notes{"2:INVALID no"}));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(Flight::not_before(*again[0]), now + 1s);
  ASSERT_EQ(again[0]->commands, 2U);
  EXPECT_EQ(again[0]->bytes, "abcd");
  EXPECT_EQ(again[0]->jobs.at(0).begin, 1U);
  EXPECT_EQ(again[0]->jobs.at(1).begin, 3U);
  auto second = std::exchange(again, {});
  flight.pushed(std::move(second[0]), {{1, "INVALID no more"}}, now, again);
  EXPECT_EQ(notes.back(), "3:INVALID no more");
  EXPECT_EQ(ended, 1);
}

TEST_F(FlightTest, AfterItsTimeARefusalIsTheReply) {
  auto call = std::make_unique<Noted>(notes);
  call->retry_until = now;
  flight.add(std::move(call), now);
  feed("-OVERLOADED full\r\n");
  EXPECT_EQ(notes, (Notes{"0:OVERLOADED full"}));
}

TEST_F(FlightTest, OnlyWhatIsSafeIsSentAgainAfterALostConnection) {
  auto safe = std::make_unique<Noted>(notes, 3);
  safe->is_safe_to_repeat = true;
  flight.add(std::move(safe), now);
  flight.add(std::make_unique<Noted>(notes), now);
  feed("+a\r\n");
  flight.lose(Error(ErrorCode::unavailable, "gone"), now, again);
  EXPECT_EQ(notes, (Notes{"0:a", "0!unavailable"}));
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(again[0]->commands, 2U);
  flight.add(std::move(again[0]), now);
  feed("+b\r\n+c\r\n");
  EXPECT_EQ(notes, (Notes{"0:a", "0!unavailable", "1:b", "2:c"}));
}

}  // namespace
}  // namespace delayq::sdk
