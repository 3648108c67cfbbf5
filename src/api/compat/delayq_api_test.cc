// The API of DelayQ, and what its authors had not finished.
#include <gmock/gmock.h>

#include "json/reader.h"
#include "tests/support/compat_client.h"

namespace delayq::compat {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class DelayQApiTest : public testing::Test, public CompatClient {
 protected:
  /// What an answer has under "data", which is a text.
  static std::string data_of(const std::string& answer) {
    for (const json::Member& member : json::members_of(*json::parse(answer))) {
      if (member.name == "data") return *json::text_of(member.value);
    }
    return "(no data)";
  }
  std::string add(std::string_view fields) {
    return say_to("POST", "/delayq/job/add", fmt::format("{{{}}}", fields));
  }
  std::string pop(std::string_view topic) {
    return say_to("POST", "/delayq/job/pop", fmt::format(R"({{"topic":"{}"}})", topic));
  }
  std::string with_id(std::string_view verb, std::string_view id) {
    return say_to("POST", fmt::format("/delayq/job/{}", verb), fmt::format(R"({{"jobid":"{}"}})", id));
  }
  std::string list(std::string_view topic, int state) {
    return data_of(say_to("GET", fmt::format("/delayq/job/list?topic={}&state={}", topic, state)));
  }
};

TEST_F(DelayQApiTest, ping) {
  EXPECT_EQ(say_to("GET", "/delayq/ping"),
            R"({"code":"0","info":"2023-11-14 22:13:20当前状态正常！","data":"PONG"})");
  EXPECT_EQ(say_to("POST", "/delayq/ping"), say_to("GET", "/delayq/ping"));
  queue.stop(now, Millis{0}, [](const Result<StopReport>&) {});
  EXPECT_THAT(say_to("GET", "/delayq/ping", "", 503), HasSubstr(R"({"code":"1","info":"2023-11-14)"));
}

TEST_F(DelayQApiTest, a_jobs_life) {
  const std::string added = add(
      R"("jobid":"job1_2","name":"关闭订单","topic":"top1","data":"{\"uid\":1}","exectime":1700000010,"ttr":30)");
  const std::string job = R"({"jobid":"job1_2","name":"关闭订单","topic":"top1","data":"{\"uid\":1}",)"
                          R"("addtime":1700000000,"exectime":1700000010,"tryes":0,"ttr":30,"state":0})";
  EXPECT_THAT(added, StartsWith(R"({"code":"0","info":"添加任务成功！","data":"{\"jobid\":\"job1_2\",)"));
  EXPECT_EQ(data_of(added), job);
  EXPECT_EQ(data_of(with_id("info", "job1_2")), job);
  EXPECT_EQ(data_of(say_to("GET", "/delayq/job/info?jobid=job1_2")), job);
  EXPECT_EQ(pop("top1"), R"({"code":"1","info":"取任务出错,当前Topic下暂无Ready job！","data":""})");

  pass(std::chrono::seconds{10});
  const std::string popped = pop("top1");
  EXPECT_THAT(popped, StartsWith(R"({"code":"0","info":"取出任务成功！","data":)"));
  EXPECT_THAT(data_of(popped), HasSubstr(R"("tryes":1,"ttr":30,"state":2})"));
  EXPECT_EQ(with_id("finish", "job1_2"), R"({"code":"0","info":"标识完成任务成功！","data":""})");
  EXPECT_THAT(list("top1", 3), HasSubstr(R"("jobid":"job1_2")")) << "the finish pool";
  EXPECT_THAT(data_of(with_id("info", "job1_2")), HasSubstr(R"("jobid":"job1_2")"));
  EXPECT_THAT(data_of(with_id("info", "job1_2")), HasSubstr(R"("state":3})")) << "info knows it";
  EXPECT_THAT(with_id("finish", "job1_2"), HasSubstr(R"("code":"0")")) << "it is finished, as wanted";
  EXPECT_THAT(with_id("remove", "job1_2"), HasSubstr("任务不存在！"));
}

TEST_F(DelayQApiTest, no_time_means_now_and_no_ttr_means_20_seconds) {
  for (const char* fields :
       {R"("jobid":"a","topic":"t")", R"("jobid":"b","topic":"t","exectime":0,"ttr":-1)"}) {
    EXPECT_THAT(data_of(add(fields)), HasSubstr(R"("exectime":1700000000,"tryes":0,"ttr":20,"state":1})"));
  }
  EXPECT_THAT(data_of(add(R"("jobid":"c","topic":"t","exectime":5)")), HasSubstr(R"("exectime":5,)"))
      << "the past is fine";
  EXPECT_THAT(data_of(pop("t")), HasSubstr(R"("jobid":"c")")) << "and goes first";
}

TEST_F(DelayQApiTest, the_lease_is_the_jobs_ttr) {
  add(R"("jobid":"a","topic":"t","ttr":5,"retry":0)");
  pop("t");
  pass(Millis{4'999});
  EXPECT_THAT(pop("t"), HasSubstr("暂无"));
  pass(Millis{1});
  EXPECT_THAT(data_of(pop("t")), HasSubstr(R"("tryes":2,)"));
}

TEST_F(DelayQApiTest, what_waits_can_be_finished_as_well) {
  EXPECT_THAT(with_id("finish", "a"), HasSubstr("任务不存在！"));
  add(R"("jobid":"a","topic":"t","data":"7","name":"n")");
  add(R"("jobid":"b","topic":"t","exectime":1700000010)");
  for (const char* id : {"a", "b"}) {
    EXPECT_EQ(with_id("finish", id), R"({"code":"0","info":"标识完成任务成功！","data":""})");
    EXPECT_THAT(data_of(with_id("info", id)), HasSubstr(R"("state":3})")) << id;
  }
  EXPECT_THAT(data_of(with_id("info", "a")), HasSubstr(R"("name":"n","topic":"t","data":"7",)"));
  pass(std::chrono::seconds{20});
  EXPECT_THAT(pop("t"), HasSubstr("暂无")) << "nobody gets them any more";
}

TEST_F(DelayQApiTest, what_waits_is_finished_without_a_finish_pool) {
  queue.set_settings(now, "t", {.keep_done = Retention{}}, [](const Status&) {});
  add(R"("jobid":"a","topic":"t")");
  EXPECT_THAT(with_id("finish", "a"), HasSubstr(R"("code":"0")"));
  EXPECT_THAT(pop("t"), HasSubstr("暂无"));
}

TEST_F(DelayQApiTest, remove_tells_what_it_did) {
  add(R"("jobid":"a","topic":"t")");
  EXPECT_EQ(with_id("remove", "a"), R"({"code":"0","info":"删除任务成功！","data":""})");
  EXPECT_EQ(with_id("remove", "a"), R"({"code":"1","info":"删除任务出错！任务不存在！","data":""})");
  add(R"("jobid":"b","topic":"t")");
  pop("t");
  EXPECT_THAT(with_id("remove", "b"), HasSubstr("正在执行"));
  pass(std::chrono::seconds{20});
  EXPECT_THAT(with_id("info", "b"), HasSubstr("任务不存在！")) << "it was not tried again";
}

TEST_F(DelayQApiTest, bpop_waits_for_the_job) {
  say(request("POST", "/delayq/job/bpop", R"({"topic":"t","timeout":10})"));
  EXPECT_EQ(engine.usage().jobs, 0u);
  const PushRequest job{.topic = "t", .id = "a", .body = "x", .delay = Millis{3'000}};
  queue.push(now, {&job, 1}, [](const Result<PushReport>&) {});
  pass(Millis{2'999});
  EXPECT_THAT(conversation->output(), IsEmpty());
  pass(Millis{1});
  EXPECT_THAT(conversation->output(), HasSubstr("取出任务成功！"));
}

TEST_F(DelayQApiTest, bpop_ends_at_its_timeout_and_with_its_client) {
  EXPECT_THAT(say(request("POST", "/delayq/job/bpop", R"({"topic":"t","timeout":2})")), IsEmpty());
  pass(std::chrono::seconds{2});
  EXPECT_THAT(std::exchange(conversation->output(), {}), HasSubstr("暂无Ready job！"));
  EXPECT_THAT(say(request("POST", "/delayq/job/bpop", R"({"topic":"t"})")), IsEmpty());
  pass(std::chrono::seconds{29});
  EXPECT_THAT(conversation->output(), IsEmpty());
  conversation->hang_up();
  const PushRequest job{.topic = "t", .id = "a"};
  queue.push(now, {&job, 1}, [](const Result<PushReport>&) {});
  settle();
  conversation = std::make_shared<http::Conversation>(host, *this);
  EXPECT_THAT(pop("t"), HasSubstr("取出任务成功！")) << "who is gone got nothing";
}

// ---- what the original's list of unfinished things asks for

TEST_F(DelayQApiTest, own_retry_times) {
  add(R"("jobid":"a","topic":"t","ttr":1,"retry":[10,60])");
  for (const int wait : {10, 60, 60}) {
    EXPECT_THAT(pop("t"), HasSubstr(R"("code":"0")"));
    pass(std::chrono::seconds{1});  // the ttr
    pass(std::chrono::seconds{wait} - Millis{1});
    EXPECT_THAT(pop("t"), HasSubstr(R"("code":"1")")) << wait;
    pass(Millis{1});
  }
  EXPECT_THAT(data_of(pop("t")), HasSubstr(R"("tryes":4,)"));
}

TEST_F(DelayQApiTest, own_number_of_attempts_and_the_fail_pool) {
  add(R"("jobid":"a","topic":"t","ttr":1,"retry":0,"maxtryes":2)");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(pop("t"), HasSubstr(R"("code":"0")"));
    pass(std::chrono::seconds{1});
  }
  EXPECT_THAT(pop("t"), HasSubstr("暂无"));
  EXPECT_THAT(list("t", 4), AllOf(HasSubstr(R"("jobid":"a")"), HasSubstr(R"("tryes":2,)"),
                                  HasSubstr(R"("state":4,"error":")")));
}

TEST_F(DelayQApiTest, lists_of_jobs_in_pages) {
  for (const char* id : {"a", "b", "c"}) add(fmt::format(R"("jobid":"{}","topic":"t","data":"x")", id));
  pop("t");
  EXPECT_THAT(list("t", 2), HasSubstr(R"({"jobs":[{"jobid":"a")"));
  EXPECT_EQ(list("t", 0), R"({"jobs":[],"cursor":""})");
  const std::string first =
      data_of(say_to("POST", "/delayq/job/list", R"({"topic":"t","state":1,"limit":1})"));
  EXPECT_THAT(first, AllOf(HasSubstr(R"("jobid":"b")"), HasSubstr(R"("data":"x")"),
                           Not(HasSubstr(R"("jobid":"c")"))));
  const std::string rest = data_of(
      say_to("POST", "/delayq/job/list",
             fmt::format(R"({{"topic":"t","state":1,"limit":1,"cursor":"{}"}})", member(first, "cursor"))));
  EXPECT_THAT(rest, HasSubstr(R"("jobid":"c")"));
}

TEST_F(DelayQApiTest, bad_parameters) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"add", "", "jobid, topic 必须填写！"},
      {"add", "nonsense", "JSON"},
      {"add", R"({"jobid":"a"})", "topic"},
      {"add", R"({"jobid":7,"topic":"t"})", "jobid"},
      {"add", R"({"jobid":"a","topic":"a b"})", "topic"},
      {"add", R"({"jobid":"a","topic":"t","data":{}})", "data"},
      {"add", R"({"jobid":"a","topic":"t","exectime":"1"})", "exectime"},
      {"add", R"({"jobid":"a","topic":"t","exectime":-1})", "exectime"},
      {"add", R"({"jobid":"a","topic":"t","exectime":9223372036854775807})", "exectime"},
      {"add", R"({"jobid":"a","topic":"t","exectime":99999999999})", "at"},
      {"add", R"({"jobid":"a","topic":"t","ttr":86401})", "ttr"},
      {"add", R"({"jobid":"a","topic":"t","ttr":1.5})", "ttr"},
      {"add", R"({"jobid":"a","topic":"t","maxtryes":-1})", "maxtryes"},
      {"add", R"({"jobid":"a","topic":"t","maxtryes":2000000})", "attempts"},
      {"add", R"({"jobid":"a","topic":"t","retry":"10"})", "retry"},
      {"add", R"({"jobid":"a","topic":"t","retry":[]})", "backoff"},
      {"add", R"({"jobid":"a","topic":"t","retry":[-1]})", "retry"},
      {"add", R"({"jobid":"a","topic":"t","name":"a\nb"})", "name"},
      {"pop", "{}", "topic值不能为空"},
      {"bpop", R"({"topic":"t","timeout":3601})", "timeout"},
      {"bpop", R"({"topic":"t","timeout":-1})", "timeout"},
      {"info", "{}", "缺少参数jobid"},
      {"finish", R"({"jobid":"a\u0000"})", "jobid"},
      {"remove", "[]", "object"},
      {"list", R"({"topic":"t"})", "state"},
      {"list", R"({"topic":"t","state":5})", "state"},
      {"list", R"({"state":1})", "topic"},
  };
  for (const auto& [verb, request, field] : cases) {
    const std::string answer = say_to("POST", fmt::format("/delayq/job/{}", verb), request);
    EXPECT_THAT(answer, StartsWith(R"({"code":"1","info":"提交参数不正确！)")) << request;
    EXPECT_THAT(answer, HasSubstr(field)) << request;
    EXPECT_TRUE(answer.ends_with(R"(,"data":""})"));
  }
  EXPECT_EQ(engine.usage().jobs, 0u) << "nothing was stored";
}

TEST_F(DelayQApiTest, an_id_is_used_once) {
  add(R"("jobid":"a","topic":"t")");
  for (const char* topic : {"t", "u"})
    EXPECT_THAT(add(fmt::format(R"("jobid":"a","topic":"{}")", topic)),
                HasSubstr("当前任务id已经存在，不允许重复添加！"));
}

}  // namespace
}  // namespace delayq::compat
