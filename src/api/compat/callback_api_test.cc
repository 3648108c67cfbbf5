// The API of delay_queue_callback, first as its document shows it.
#include <gmock/gmock.h>

#include "queue/job_options.h"
#include "tests/support/compat_client.h"

namespace delayq::compat {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// The document's request, byte for byte.
constexpr std::string_view kExample = R"({
  "topic": "inform",
  "id": "08019413123",
  "delay": 1567135500,
  "callback":"https://www.baidu.com",
  "body": {"example": true}
})";
constexpr std::string_view kJob = "/job?topic=inform&id=08019413123";

class CallbackApiTest : public testing::Test, public CompatClient {
 protected:
  std::optional<JobOptions> options_of(std::string_view topic, std::string_view id) {
    std::optional<JobOptions> options;
    queue.get(now, {topic, id}, [&](const Result<std::optional<FoundJob>>& found) {
      if (found.ok() && *found) {
        texts = (*found)->job.options;
        options = decode_job_options(texts);
      }
    });
    settle();
    return options;
  }
  std::string texts;
};

TEST_F(CallbackApiTest, the_documents_add) {
  EXPECT_EQ(say_to("POST", "/job", kExample), compact(R"({
  "success": 1,
  "message": "添加新任务成功",
  "data": null
})"));
}

TEST_F(CallbackApiTest, the_documents_get) {
  say_to("POST", "/job", kExample);
  const std::string answer = say_to("GET", kJob);
  EXPECT_EQ(compact(answer), compact(R"({
  "success": 1,
  "message": "添加新任务成功",
  "data": {
            "topic": "inform",
            "id": "08019413123",
            "delay": 1567135500,
            "body": {"example": true},
            "job_sign":"inform-08019413123"
          }
})"));
  EXPECT_THAT(answer, HasSubstr(R"("body":{"example": true},)")) << "a body is kept as it was written";
}

TEST_F(CallbackApiTest, the_documents_delete) {
  say_to("POST", "/job", kExample);
  const std::string deleted = compact(R"({
    "success": 1,
    "message": "删除job成功",
    "data": null
})");
  EXPECT_EQ(say_to("DELETE", kJob), deleted);
  EXPECT_EQ(say_to("DELETE", kJob), deleted) << "it is not there, as wanted";
  EXPECT_EQ(say_to("GET", kJob),
            R"({"success":0,"message":"获取job信息失败: there is no such job","data":null})");
}

TEST_F(CallbackApiTest, the_delay_is_in_seconds) {
  say_to("POST", "/job", kExample);
  EXPECT_THAT(ask("GET", "/v1/topics/inform/jobs/08019413123").body, HasSubstr(R"("due_at":"2073-07-13T)"))
      << "49 years after 2023";
  say_to("POST", "/job", R"({"topic":"inform","id":"b","delay":2,"callback":"http://127.0.0.1/"})");
  pass(Millis{1'999});
  EXPECT_THAT(ask("GET", "/v1/topics/inform/jobs/b").body, HasSubstr(R"("state":"delayed")"));
  pass(Millis{1});
  EXPECT_THAT(ask("GET", "/v1/topics/inform/jobs/b").body, HasSubstr(R"("state":"ready")"));
}

TEST_F(CallbackApiTest, what_is_missing_is_told_in_the_originals_words) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"topic":"t","id":"","delay":1,"callback":"http://x/"})", "不合法的JOBID"},
      {R"({"topic":"t","delay":1,"callback":"http://x/"})", "不合法的JOBID"},
      {R"({"topic":"t","id":"a","delay":0,"callback":"http://x/"})", "执行时间不合法"},
      {R"({"topic":"t","id":"a","delay":-5,"callback":"http://x/"})", "执行时间不合法"},
      {R"({"topic":"t","id":"a","callback":"http://x/"})", "执行时间不合法"},
      {R"({"topic":"t","id":"a","delay":4000000000,"callback":"http://x/"})", "执行时间不合法"},
      {R"({"topic":"t","id":"a","delay":1})", "未填写回调URL"},
      {R"({"topic":"t","id":"a","delay":1,"callback":""})", "未填写回调URL"},
      {R"({"id":"a","delay":1,"callback":"http://x/"})", "工作类型不能为空"},
      {R"({"topic":"a b","id":"a","delay":1,"callback":"http://x/"})", "topic"},
      {R"({"topic":"t","id":"a","delay":"1","callback":"http://x/"})", "delay"},
      {R"({"topic":"t","id":"a","delay":1,"callback":7})", "callback"},
      {"nonsense", "JSON"},
      {"[]", "object"},
  };
  for (const auto& [request, text] : cases) {
    const std::string answer = say_to("POST", "/job", request);
    EXPECT_THAT(answer, StartsWith(R"({"success":0,"message":"参数不正确: )")) << request;
    EXPECT_THAT(answer, HasSubstr(text)) << request;
    EXPECT_TRUE(answer.ends_with(R"(,"data":null})"));
  }
  for (const char* method : {"GET", "DELETE"}) {
    EXPECT_THAT(say_to(method, "/job?topic=t"), HasSubstr("jobID参数缺失"));
    EXPECT_THAT(say_to(method, "/job?id=a"), HasSubstr("topic参数缺失"));
  }
}

TEST_F(CallbackApiTest, an_id_that_waits_is_refused_in_its_own_topic_only) {
  say_to("POST", "/job", kExample);
  EXPECT_THAT(say_to("POST", "/job", kExample), StartsWith(R"({"success":0,"message":"加入工作队列失败: )"));
  EXPECT_THAT(say_to("POST", "/job",
                     R"({"topic":"other","id":"08019413123","delay":1,"callback":"http://127.0.0.1/"})"),
              HasSubstr(R"("success":1)"));
}

TEST_F(CallbackApiTest, a_job_is_tried_three_times_unless_its_topic_says_otherwise) {
  say_to("POST", "/job", kExample);
  EXPECT_EQ(options_of("inform", "08019413123")->callback, "https://www.baidu.com");
  EXPECT_EQ(options_of("inform", "08019413123")->attempts, 3u);
  EXPECT_EQ(options_of("inform", "08019413123")->method, "PUT");
  EXPECT_EQ(options_of("inform", "08019413123")->format, CallbackFormat::kCallbackApi);
  Settings settings;
  settings.attempts = 7;
  queue.set_settings(now, "slow", settings, [](const Status&) {});
  say_to("POST", "/job", R"({"topic":"slow","id":"a","delay":1,"callback":"http://127.0.0.1/"})");
  EXPECT_EQ(options_of("slow", "a")->attempts, std::nullopt);
}

TEST_F(CallbackApiTest, a_body_may_be_any_value_or_none) {
  const auto body_of = [&](std::string_view id) {
    const std::string answer = say_to("GET", fmt::format("/job?topic=t&id={}", id));
    return answer.substr(answer.find("\"body\""));
  };
  const auto add = [&](std::string_view id, std::string_view body) {
    say_to("POST", "/job",
           fmt::format(R"({{"topic":"t","id":"{}","delay":5,"callback":"http://127.0.0.1/"{}}})", id, body));
  };
  add("text", R"(,"body":"hello")");
  add("none", "");
  EXPECT_THAT(body_of("text"), StartsWith(R"("body":"hello",)"));
  EXPECT_THAT(body_of("none"), StartsWith(R"("body":null,)"));
  ask("POST", "/v1/topics/t/jobs?id=plain&delay=9", "not JSON", "text/plain");
  EXPECT_THAT(body_of("plain"), StartsWith(R"("body":"not JSON",)"));
}

}  // namespace
}  // namespace delayq::compat
