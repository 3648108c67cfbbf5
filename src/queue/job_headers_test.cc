#include "queue/job_headers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/random.h"

namespace delayq {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Given = std::vector<JobHeader>;

std::string encoded(const JobHeaders& headers) {
  std::string bytes;
  encode_job_headers(headers, bytes);
  return bytes;
}

std::string encoded(const Given& headers) {
  std::string bytes;
  encode_job_headers(headers, bytes);
  return bytes;
}

JobHeaders record_with(std::vector<JobHeaders::Header> headers) {
  JobHeaders record;
  record.is_record = true;
  record.headers = std::move(headers);
  return record;
}

/// The field that an error names; empty when there is none.
std::string refused_field(const Given& headers) {
  const Status status = check_job_headers(encoded(headers));
  return status.ok() ? std::string() : status.error().field;
}

std::string reserved_field(std::string_view name) {
  const Status status = check_header_names(encoded(Given{{"a", "1"}, {name, "1"}}));
  return status.ok() ? std::string() : status.error().field;
}

TEST(JobHeaders, EverythingComesBack) {
  JobHeaders empty_key = record_with({});
  empty_key.key = "";
  JobHeaders tombstone = record_with({});
  tombstone.key = "k";
  tombstone.is_tombstone = true;
  JobHeaders pushed;
  pushed.headers = {{"a", "1"}, {"empty", ""}};
  for (const JobHeaders& each :
       {record_with({}), empty_key, tombstone, pushed,
        record_with({{"a", "1"}, {"a", "2"}, {"empty", ""}, {"none", std::nullopt}, {"", "\xff"}})}) {
    const std::string bytes = encoded(each);
    EXPECT_FALSE(bytes.empty());
    EXPECT_EQ(decode_job_headers(bytes), each);
    EXPECT_EQ(are_of_record(bytes), each.is_record);
    EXPECT_TRUE(check_job_headers(bytes).ok());
  }
  EXPECT_EQ(encoded(pushed), encoded(Given{{"a", "1"}, {"empty", ""}}));
  EXPECT_EQ(encoded(Given{}), "");
}

TEST(JobHeaders, TheStoredFormOfARecordStays) {
  // As written before jobs had headers of their own.
  EXPECT_EQ(encoded(record_with({{"none", std::nullopt}})), std::string("\x93\x00\xa4none\xc2", 8));
  JobHeaders keyed = record_with({{"name", "value"}});
  keyed.key = "k";
  EXPECT_EQ(encoded(keyed), "\x94\x01\xa1k\xa4name\xa5value");
}

TEST(JobHeaders, ARecordAboveItsBoundsIsTooLarge) {
  const std::string large(HeaderLimits::kRecordBytes, 'x');
  JobHeaders record = record_with({});
  record.key = large;
  Status status = check_job_headers(encoded(record));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kTooLarge);
  EXPECT_THAT(status.error().detail, HasSubstr("32768"));

  record.key.reset();
  record.headers.resize(HeaderLimits::kRecordHeaders + 1);
  status = check_job_headers(encoded(record));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kTooLarge);
  record.headers.pop_back();
  EXPECT_TRUE(check_job_headers(encoded(record)).ok());
}

TEST(JobHeaders, ErrorsNameTheHeader) {
  EXPECT_EQ(refused_field({{"traceparent", "00-1"}, {"X_a.B-9", "grün ü, %\"\\"}}), "");
  const std::string longest(HeaderLimits::kNameBytes, 'n');
  EXPECT_EQ(refused_field({{longest, "x"}}), "");
  for (const std::string& name : {std::string(), longest + "n", std::string("a b"), std::string("a:"),
                                  std::string("ü"), std::string("a\r\nHost"), std::string("a\0", 2)}) {
    EXPECT_EQ(refused_field({{"ok", "1"}, {name, "x"}}), "headers") << name;
  }
  const std::string value(HeaderLimits::kValueBytes, 'v');
  EXPECT_EQ(refused_field({{"a", value}}), "");
  for (const std::string& bad :
       {value + "v", std::string("a\r\nHost: x"), std::string("a\tb"), std::string("\0", 1),
        std::string("\x7f"), std::string("\xc2\x85"), std::string("\xff"), std::string("\xc3"),
        std::string(" a"), std::string("a ")}) {
    EXPECT_EQ(refused_field({{"ok", "1"}, {"a", bad}}), "headers.a") << bad;
  }
}

TEST(JobHeaders, ANameIsThereOnce) {
  for (const std::string_view same : {"trace-id", "Trace-ID", "TRACE_ID", "trace.id"})
    EXPECT_EQ(refused_field({{"trace-id", "1"}, {"b", "2"}, {same, "3"}}), fmt::format("headers.{}", same));
  EXPECT_EQ(refused_field({{"trace-id", "1"}, {"traceid", "2"}, {"trace-id-", "3"}}), "");
}

TEST(JobHeaders, ThereAreBoundsForAllTogether) {
  std::vector<std::string> names;
  for (size_t i = 0; i <= HeaderLimits::kHeaders; ++i) names.push_back(fmt::format("h{}", i));
  Given headers;
  for (const std::string& name : names) headers.push_back({name, "v"});
  EXPECT_EQ(refused_field(headers), "headers");
  headers.pop_back();
  EXPECT_EQ(refused_field(headers), "");
  const std::string value(HeaderLimits::kValueBytes - 1, 'v');
  headers = {{"a", value}, {"b", value}, {"c", value}, {"d", value}};
  EXPECT_EQ(refused_field(headers), "") << "exactly 16 KiB";
  headers.push_back({"e", ""});
  EXPECT_EQ(refused_field(headers), "headers");
}

TEST(JobHeaders, NamesOfTheCallAndOfWhoCallsAreReserved) {
  for (const std::string_view name : {"Host",
                                      "content-type",
                                      "Content_Length",
                                      "Transfer-Encoding",
                                      "transfer.encoding",
                                      "connection",
                                      "webhook-id",
                                      "WEBHOOK_SIGNATURE",
                                      "ce-id",
                                      "delayq-job-id",
                                      "delayq-anything",
                                      "Authorization",
                                      "Cookie",
                                      "X-Forwarded-For",
                                      "x_real_ip",
                                      "Proxy",
                                      "proxy-x",
                                      "TE",
                                      "Upgrade",
                                      "Expect",
                                      "User-Agent",
                                      "Remote-User",
                                      "Sec-Fetch-Site"})
    EXPECT_EQ(reserved_field(name), fmt::format("headers.{}", name));
  for (const std::string_view name : {"traceparent", "tracestate", "baggage", "X-Request-Id", "b3", "hosts",
                                      "tenant", "delayq", "ce", "webhook", "terms", "Idempotency-Key"})
    EXPECT_EQ(reserved_field(name), "");
  // What is stored is not refused because of its name, and a record may have any.
  EXPECT_TRUE(check_job_headers(encoded(Given{{"host", "1"}})).ok());
  EXPECT_TRUE(check_header_names(encoded(record_with({{"host", "1"}}))).ok());
}

TEST(CallbackHeaders, AreCheckedAndNoErrorHasAValue) {
  EXPECT_TRUE(check_callback_headers({}).ok());
  EXPECT_TRUE(check_callback_headers({"Authorization: Bearer abc", "x-api-key:k", "Cookie: a=b; c=d"}).ok());
  for (const std::string_view line :
       {"Authorization", ": hunter2", "a b: hunter2", "Host: hunter2", "webhook-signature: hunter2",
        "Content-Type: hunter2", "X-Forwarded-For: hunter2",
        "Authorization:", "Authorization: hunter2\r\nX: y", "Connection: hunter2"}) {
    const Status status = check_callback_headers({std::string(line)});
    ASSERT_FALSE(status.ok()) << line;
    EXPECT_EQ(status.error().field, "callback_headers") << line;
    EXPECT_THAT(status.error().detail, testing::Not(HasSubstr("hunter2"))) << line;
  }
  EXPECT_THAT(check_callback_headers({"a: 1", "A: 2"}).error().detail, HasSubstr("given twice"));
  EXPECT_FALSE(check_callback_headers(std::vector<std::string>(17, "a: 1")).ok());
  EXPECT_FALSE(check_callback_headers({"a: " + std::string(CallbackHeaderLimits::kAllBytes, 'x')}).ok());
  EXPECT_TRUE(check_callback_header_lines("Authorization: x\nB: y").ok());
  EXPECT_FALSE(check_callback_header_lines("Authorization: x\nno line").ok());
  EXPECT_THAT(parse_header_lines("A: x\nB:  y "), ElementsAre(JobHeader{"A", "x"}, JobHeader{"B", "y"}));
}

TEST(CallbackHeaders, OneLineNeverBecomesTwo) {
  std::string lines;
  EXPECT_TRUE(add_header_line("A: x", lines).ok());
  for (const std::string_view line :
       {"B: hunter2\nC: y", "B: hunter2\rC: y", "B: hunter2\r\nC: y", "B: hunter2\n", "\nB: hunter2"}) {
    const Status status = add_header_line(line, lines);
    ASSERT_FALSE(status.ok()) << line;
    EXPECT_EQ(status.error().field, "callback_headers");
    EXPECT_THAT(status.error().detail, testing::Not(HasSubstr("hunter2")));
  }
  EXPECT_TRUE(add_header_line("B: y", lines).ok());
  EXPECT_EQ(lines, "A: x\nB: y");
}

TEST(JobHeaders, OfARecordWhatFitsIsVisible) {
  EXPECT_THAT(visible_headers(""), IsEmpty());
  EXPECT_THAT(visible_headers("other bytes"), IsEmpty());
  EXPECT_THAT(visible_headers(encoded(Given{{"b", "1"}, {"a", ""}})),
              ElementsAre(JobHeader{"b", "1"}, JobHeader{"a", ""}));
  const std::string large(HeaderLimits::kValueBytes + 1, 'x');
  EXPECT_THAT(visible_headers(encoded(record_with({{"trace", "1"},
                                                   {"none", std::nullopt},
                                                   {"binary", "\xff\x01"},
                                                   {"no name", "x"},
                                                   {"large", large},
                                                   {"b", "2"},
                                                   {"TRACE", "3"}}))),
              ElementsAre(JobHeader{"TRACE", "3"}, JobHeader{"b", "2"}));
}

TEST(JobHeaders, OfARecordNoMoreIsVisibleThanAPushMayHave) {
  std::vector<std::string> names;
  for (size_t i = 0; i < HeaderLimits::kRecordHeaders; ++i) names.push_back(fmt::format("h{}", i));
  JobHeaders record = record_with({});
  for (const std::string& name : names) record.headers.push_back({name, "v"});
  EXPECT_EQ(visible_headers(encoded(record)).size(), HeaderLimits::kHeaders);
  const std::string value(HeaderLimits::kValueBytes, 'v');
  record = record_with({{"a", value}, {"b", value}, {"c", value}, {"d", value}, {"e", "small"}});
  EXPECT_THAT(visible_headers(encoded(record)), ElementsAre(JobHeader{"a", value}, JobHeader{"b", value},
                                                            JobHeader{"c", value}, JobHeader{"e", "small"}));
}

TEST(JobHeaders, OtherBytesAreNoHeaders) {
  JobHeaders record = record_with({{"name", "value"}, {"none", std::nullopt}});
  record.key = "key";
  const std::string bytes = encoded(record);
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_job_headers(bytes.substr(0, size))) << size;
  EXPECT_FALSE(decode_job_headers(bytes + "x"));
  EXPECT_FALSE(decode_job_headers("\x91\x08"));       // a flag that is not known
  EXPECT_FALSE(decode_job_headers("\x91\x05"));       // pushed, with a key
  EXPECT_FALSE(decode_job_headers("\x91\x01"));       // a key is announced
  EXPECT_FALSE(decode_job_headers("\x92\x02\xa1n"));  // a name without a value
  EXPECT_FALSE(decode_job_headers("\x93\x02\xa1n\xc3"));
  EXPECT_FALSE(decode_job_headers("\x93\x04\xa1n\xc2"));  // pushed, without a value

  constexpr uint64_t kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  Random random(kSeed);
  const std::string pushed = encoded(Given{{"traceparent", "00-1"}, {"tenant", "acme"}});
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = i % 2 == 0 ? bytes : pushed;
    damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    // Must not read outside: the sanitizers look.
    const std::vector<JobHeader> visible = visible_headers(damaged);
    const bool is_right = are_of_record(damaged) || check_job_headers(damaged).ok();
    EXPECT_TRUE(!is_right || visible.empty() || check_job_headers(encoded(visible)).ok());
  }
}

}  // namespace
}  // namespace delayq
