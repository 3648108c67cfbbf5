// The API of go-delay-queue, first as its document shows it.
#include <gmock/gmock.h>

#include "tests/support/compat_client.h"

namespace delayq::compat {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view kAdd = "/delay-queue/api/jobs/add";
constexpr std::string_view kRemove = "/delay-queue/api/jobs/remove";
constexpr std::string_view kGet = "/delay-queue/api/jobs/get";
constexpr std::string_view kNothing = R"({"code":0,"message":"操作成功","data":null})";

class GoDelayQueueTest : public testing::Test, public CompatClient {};

TEST_F(GoDelayQueueTest, the_documents_add) {
  const std::string added = say_to("POST", kAdd, R"({
  "topic": "order",
  "delay": 3600,
  "body": "{\"uid\": 10829378,\"created\": 1498657365 }"
})");
  const std::string id = member(added, "job_id");
  EXPECT_EQ(id.size(), 36u) << "it was made by the server";
  EXPECT_EQ(added, R"({"code":0,"message":"操作成功","data":{"job_id":")" + id + R"("}})");
}

TEST_F(GoDelayQueueTest, the_documents_get) {
  now = Moment{std::chrono::seconds{1506787443}};
  say_to(
      "POST", kAdd,
      R"({"topic":"order","id":"15702398321","delay":10,"body":"{\"uid\": 10829378,\"created\": 1498657365 }"})");
  EXPECT_EQ(say_to("POST", kGet, R"({
  "job_id": "15702398321"
})"),
            compact(R"({
    "code": 0,
    "message": "操作成功",
    "data": {
        "topic": "order",
        "id": "15702398321",
        "exec_time": 1506787453,
        "delay": 10,
        "body": "{\"uid\": 10829378,\"created\": 1498657365 }"

    }
})"));
}

TEST_F(GoDelayQueueTest, the_documents_missing_job) {
  const std::string missing = compact(R"({
  "code": 0,
  "message": "操作成功",
  "data": null
})");
  EXPECT_EQ(say_to("POST", kGet, R"({"job_id": "15702398321"})"), missing);
  EXPECT_EQ(say_to("GET", "/delay-queue/api/jobs/get?job_id=15702398321"), missing);
}

TEST_F(GoDelayQueueTest, the_documents_remove) {
  say_to("POST", kAdd, R"({"topic":"order","id":"15702398321","delay":10,"body":""})");
  EXPECT_EQ(say_to("POST", kRemove, R"({
  "job_id": "15702398321"
})"),
            kNothing);
  EXPECT_EQ(say_to("POST", kGet, R"({"job_id":"15702398321"})"), kNothing);
  EXPECT_EQ(say_to("POST", kRemove, R"({"job_id":"15702398321"})"), kNothing) << "it is not there, as wanted";
}

TEST_F(GoDelayQueueTest, a_delivered_job_can_still_be_fetched) {
  say_to("POST", kAdd, R"({"topic":"order","id":"7","delay":1,"body":"the body"})");
  pass(std::chrono::seconds{1});
  const std::string_view topic = "order";
  queue.pop(now, {.topics = {&topic, 1}, .auto_ack = true}, [](const Result<PopAnswer>&) {});
  settle();
  EXPECT_THAT(say_to("GET", "/delay-queue/api/jobs/get?job_id=7"),
              HasSubstr(R"("topic":"order","id":"7","exec_time":1700000001,"delay":1,"body":"the body"})"));
  EXPECT_EQ(say_to("GET", "/delay-queue/api/jobs/remove?job_id=7"), kNothing) << "it is over, as wanted";
  say_to("POST", kAdd, R"({"topic":"mail","id":"7","delay":60,"body":"another"})");
  EXPECT_THAT(say_to("GET", "/delay-queue/api/jobs/get?job_id=7"), HasSubstr(R"("body":"another"})"))
      << "the one that waits comes first";
}

TEST_F(GoDelayQueueTest, get_and_remove_by_query) {
  say_to("POST", kAdd, R"({"topic":"order","id":"a b","delay":10})");
  EXPECT_THAT(say_to("GET", "/delay-queue/api/jobs/get?job_id=a%20b"), HasSubstr(R"("id":"a b")"));
  EXPECT_EQ(say_to("GET", "/delay-queue/api/jobs/remove?job_id=a+b&other=1"), kNothing);
  EXPECT_EQ(say_to("GET", "/delay-queue/api/jobs/get?job_id=a%20b"), kNothing);
}

TEST_F(GoDelayQueueTest, bad_parameters) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "delay"},
      {"{", "JSON"},
      {"[]", "object"},
      {R"({"topic":7,"delay":1})", "topic"},
      {R"({"delay":1})", "topic"},
      {R"({"topic":"a b","delay":1})", "topic"},
      {R"({"topic":"t"})", "delay"},
      {R"({"topic":"t","delay":"1"})", "delay"},
      {R"({"topic":"t","delay":1.5})", "delay"},
      {R"({"topic":"t","delay":1,"delay":2})", "delay"},
      {R"({"topic":"t","delay":1,"id":5})", "id"},
      {R"({"topic":"t","delay":1,"id":"a\nb"})", "id"},
      {R"({"topic":"t","delay":1,"body":{"uid":1}})", "body"},
  };
  for (const auto& [request, field] : cases) {
    const std::string answer = say_to("POST", kAdd, request);
    EXPECT_THAT(answer, StartsWith(R"({"code":400,"message":"参数错误: )")) << request;
    EXPECT_THAT(answer, HasSubstr(field));
    EXPECT_TRUE(answer.ends_with(R"(,"data":null})")) << answer;
  }
  for (const char* request : {"{}", R"({"job_id":""})", R"({"job_id":7})", "7"}) {
    EXPECT_THAT(say_to("POST", kGet, request), StartsWith(R"({"code":400,)")) << request;
    EXPECT_THAT(say_to("POST", kRemove, request), StartsWith(R"({"code":400,)")) << request;
  }
  EXPECT_THAT(say_to("GET", kGet), HasSubstr("job_id"));
}

TEST_F(GoDelayQueueTest, a_delay_out_of_range_has_a_code_of_its_own) {
  const std::string refusal =
      R"json({"code":10001,"message":"delay 取值范围1 - (2^31 - 1)","data":null})json";
  for (const char* delay : {"0", "-1", "2147483648", "9223372036854775807"}) {
    EXPECT_EQ(say_to("POST", kAdd, fmt::format(R"({{"topic":"t","delay":{}}})", delay)), refusal) << delay;
  }
  EXPECT_THAT(say_to("POST", kAdd, R"({"topic":"t","delay":2147483647})"), HasSubstr(R"("code":0)"));
}

TEST_F(GoDelayQueueTest, an_id_that_waits_in_any_topic_is_refused) {
  say_to("POST", kAdd, R"({"topic":"t","id":"a","delay":10})");
  for (const char* topic : {"t", "u"}) {
    EXPECT_THAT(say_to("POST", kAdd, fmt::format(R"({{"topic":"{}","id":"a","delay":10}})", topic)),
                StartsWith(R"({"code":10002,"message":"添加job失败: )"));
  }
}

TEST_F(GoDelayQueueTest, an_id_in_two_topics_is_not_guessed) {
  ask("POST", "/v1/topics/t/jobs", R"({"id":"a","body":1,"delay":9})");
  ask("POST", "/v1/topics/u/jobs", R"({"id":"a","body":1,"delay":9})");
  EXPECT_THAT(say_to("POST", kGet, R"({"job_id":"a"})"), StartsWith(R"({"code":10004,)"));
  EXPECT_THAT(say_to("POST", kRemove, R"({"job_id":"a"})"), StartsWith(R"({"code":10003,)"));
}

TEST_F(GoDelayQueueTest, unknown_fields_and_nulls_are_passed_over) {
  EXPECT_THAT(
      say_to("POST", kAdd, R"({"topic":"t","delay":1,"id":null,"body":null,"exec_time":7,"more":[]})"),
      HasSubstr(R"("code":0)"));
  EXPECT_THAT(say_to("POST", kAdd, R"({"topic":"t","delay":1,"id":""})"), HasSubstr(R"("code":0)"));
}

TEST_F(GoDelayQueueTest, a_body_that_is_not_text_is_not_spoilt) {
  ask("POST", "/v1/topics/t/jobs?id=raw&delay=9", "\xff\x01", "application/octet-stream");
  EXPECT_THAT(say_to("POST", kGet, R"({"job_id":"raw"})"), HasSubstr(R"("body_base64":"/wE=")"));
}

TEST_F(GoDelayQueueTest, what_is_too_large_or_too_much) {
  const std::string large = R"({"topic":"t","delay":1,"body":")" + std::string((1 << 20) + 1, 'x') + "\"}";
  EXPECT_THAT(say_to("POST", kAdd, large, 413), StartsWith(R"({"code":400,"message":"参数错误: body)"));
  queue.stop(now, Millis{0}, [](const Result<StopReport>&) {});
  EXPECT_THAT(say_to("POST", kAdd, R"({"topic":"t","delay":1})", 503), StartsWith(R"({"code":10002,)"));
}

}  // namespace
}  // namespace delayq::compat
