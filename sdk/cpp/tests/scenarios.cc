#include "sdk/cpp/tests/scenarios.h"

#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <future>
#include <iomanip>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "sdk/cpp/tests/support.h"

namespace sdk_test {

namespace {

using std::chrono::milliseconds;

constexpr double kNear = 20'000;

double now_ms() {
  return static_cast<double>(
      std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count());
}
double ms_of(delayq::Time when) {
  return static_cast<double>(std::chrono::duration_cast<milliseconds>(when.time_since_epoch()).count());
}
milliseconds millis(const Json& value) { return milliseconds(static_cast<std::int64_t>(value.number)); }
delayq::Time moment(const Json& value) { return std::chrono::system_clock::now() + millis(value); }

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json::of(std::string_view(text));
}
template <class T>
Json number_or_null(const std::optional<T>& number) {
  return number ? Json::of(static_cast<double>(*number)) : Json();
}
Json time_or_null(const std::optional<delayq::Time>& when) { return when ? Json::of(ms_of(*when)) : Json(); }
Json of_headers(const delayq::Headers& headers) {
  Json json{.type = Json::Type::kObject};
  for (const auto& [name, value] : headers) json.set(name, Json::of(std::string_view(value)));
  return json;
}

/// What the steps of one `work` share.
struct Work {
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::string> signals;
  std::map<std::string, std::size_t> begun;
  std::size_t left = 0;  ///< lists that are not carried out yet
  delayq::Worker* worker = nullptr;
};

/// A handler's end that is no normal return.
struct Ending {
  std::function<void()> throws;
};

class Scenario {
 public:
  Scenario(const Json& clients, const MakeClient& make) : clients_(clients), make_(make) {}

  void step(const Json& step, Work* work = nullptr, const delayq::Job* job = nullptr);

 private:
  class Arguments;
  using Result = std::optional<Json>;

  delayq::Client client(const std::string& name);
  Json resolve(const Json& value);
  std::string payload_of(const Json& value);
  Result execute(const std::string& verb, Arguments& arguments, Work* work, const delayq::Job* job);
  Result in_handler(const std::string& verb, Arguments& arguments, Work* work, const delayq::Job* job);
  Result on_schedule(const std::string& verb, Arguments& arguments, delayq::Client& client);
  delayq::EnqueueOptions options_of(Arguments& arguments);
  delayq::NewJob job_of(Arguments& arguments);
  Json schedule(delayq::Client& client, Arguments& arguments, bool is_cron);
  void work(Arguments& arguments, delayq::Client client);
  void handle(Work& work, const Json& lists, const delayq::Job& job);
  void expect(const Json& expected, const Json& actual, const std::string& where);
  bool expect_special(const Json& expected, const Json& actual, const std::string& where);

  const Json& clients_;
  const MakeClient& make_;
  std::mutex mutex_;
  std::map<std::string, delayq::Client> made_;
  std::map<std::string, Json> saved_;
};

/// The keys of a step; one that is not asked for is not known.
class Scenario::Arguments {
 public:
  Arguments(Scenario& scenario, const Json& step) : scenario_(scenario), left_(step.members) {}

  std::optional<Json> take(std::string_view name) {
    const auto found =
        std::find_if(left_.begin(), left_.end(), [&](const auto& each) { return each.first == name; });
    if (found == left_.end()) return std::nullopt;
    Json value = scenario_.resolve(found->second);
    left_.erase(found);
    return value;
  }
  std::string text(std::string_view name) {
    const auto value = take(name);
    return value ? value->text : "";
  }
  std::string payload() {
    const auto value = take("payload");
    return value ? scenario_.payload_of(*value) : "";
  }
  void end() const {
    for (const auto& each : left_) ADD_FAILURE() << "a key that the runner does not know: " << each.first;
  }

 private:
  Scenario& scenario_;
  std::vector<std::pair<std::string, Json>> left_;
};

delayq::Client Scenario::client(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = made_.find(name);
  if (found != made_.end()) return found->second;
  const Json* const options = clients_.find(name);
  if (!name.empty() && options == nullptr) throw std::runtime_error("no client " + name);
  return made_.emplace(name, make_(options == nullptr ? Json{.type = Json::Type::kObject} : *options))
      .first->second;
}

Json Scenario::resolve(const Json& value) {
  if (value.is_string() && value.text.starts_with('$')) {
    const std::lock_guard lock(mutex_);
    return saved_.at(value.text.substr(1));
  }
  if (!value.is_object()) return value;
  if (const Json* const text = value.find("base64"))
    return Json::of(std::string_view(from_base64(text->text)));
  if (const Json* const part = value.find("repeat")) {
    std::string text;
    for (int i = 0; i < value.find("times")->number; ++i) text += part->text;
    return Json::of(std::string_view(text));
  }
  return value;
}

std::string Scenario::payload_of(const Json& value) {
  const Json* const json = value.is_object() ? value.find("json") : nullptr;
  if (json == nullptr && !value.is_string())
    throw std::logic_error("a payload that the runner does not know: " + value.dump());
  return json != nullptr ? json->dump() : value.text;
}

delayq::EnqueueOptions Scenario::options_of(Arguments& arguments) {
  delayq::EnqueueOptions options;
  if (const auto value = arguments.take("process_in")) options.process_in = millis(*value);
  if (const auto value = arguments.take("process_at")) options.process_at = moment(*value);
  if (const auto value = arguments.take("priority"))
    options.priority = static_cast<std::uint32_t>(value->number);
  if (const auto value = arguments.take("retry")) options.retry = static_cast<std::uint32_t>(value->number);
  if (const auto value = arguments.take("timeout")) options.timeout = millis(*value);
  options.backoff = arguments.text("backoff");
  options.group = arguments.text("group");
  options.callback = arguments.text("callback");
  if (const auto headers = arguments.take("headers")) {
    for (const auto& [name, value] : headers->members) options.headers[name] = resolve(value).text;
  }
  const std::string policy = arguments.text("on_conflict");
  const std::map<std::string, delayq::OnConflict> policies{{"", delayq::OnConflict::replace},
                                                           {"replace", delayq::OnConflict::replace},
                                                           {"keep", delayq::OnConflict::keep},
                                                           {"reject", delayq::OnConflict::reject}};
  // C++ has an enum for this: a word that is none of them can only be a number that is none of them.
  const auto found = policies.find(policy);
  options.on_conflict = found == policies.end() ? static_cast<delayq::OnConflict>(99) : found->second;
  return options;
}

delayq::NewJob Scenario::job_of(Arguments& arguments) {
  delayq::NewJob job;
  job.topic = arguments.text("topic");
  job.id = arguments.text("id");
  job.payload = arguments.payload();
  job.options = options_of(arguments);
  return job;
}

Json of_schedule(const delayq::Schedule& schedule) {
  Json json;
  json.set("name", text_or_null(schedule.name)).set("state", text_or_null(schedule.state));
  json.set("topic", text_or_null(schedule.topic))
      .set("payload", Json::of(std::string_view(schedule.payload)));
  json.set("every", schedule.every ? Json::of(static_cast<double>(schedule.every->count())) : Json());
  json.set("cron", text_or_null(schedule.cron)).set("zone", text_or_null(schedule.zone));
  json.set("start", time_or_null(schedule.start)).set("end", time_or_null(schedule.end));
  json.set("runs", number_or_null(schedule.runs));
  json.set("jitter", Json::of(static_cast<double>(schedule.jitter.count())));
  json.set("overlap", text_or_null(schedule.overlap)).set("missed", text_or_null(schedule.missed));
  json.set("next_at", time_or_null(schedule.next_at)).set("next_local", text_or_null(schedule.next_local));
  json.set("made", Json::of(static_cast<double>(schedule.made)));
  json.set("skipped", Json::of(static_cast<double>(schedule.skipped)));
  json.set("missed_count", Json::of(static_cast<double>(schedule.missed_count)));
  json.set("result", text_or_null(schedule.result)).set("headers", of_headers(schedule.headers));
  return json;
}

Json of_job(const delayq::JobInfo& job) {
  Json json;
  json.set("topic", text_or_null(job.topic))
      .set("id", text_or_null(job.id))
      .set("state", text_or_null(job.state));
  json.set("payload", Json::of(std::string_view(job.payload)));
  json.set("due_at", Json::of(ms_of(job.due_at))).set("pushed_at", Json::of(ms_of(job.pushed_at)));
  json.set("attempts", Json::of(double{job.attempts * 1.0})).set("priority", Json::of(job.priority * 1.0));
  json.set("group", text_or_null(job.group)).set("until", time_or_null(job.until));
  json.set("callback", text_or_null(job.callback)).set("outcome", text_or_null(job.outcome));
  return json.set("cancel_requested", Json::of(job.cancel_requested)).set("headers", of_headers(job.headers));
}

Json of_result(const delayq::EnqueueResult& result) {
  if (result.ok()) return Json::of(std::string_view(result.id));
  return Json().set("error", Json::of(name_of(result.error->code())));
}

Json Scenario::schedule(delayq::Client& client, Arguments& arguments, bool is_cron) {
  delayq::ScheduleOptions options;
  const std::string name = arguments.text("name");
  const std::string topic = arguments.text("topic");
  const std::string payload = arguments.payload();
  options.zone = arguments.text("zone");
  if (const auto value = arguments.take("start")) options.start = moment(*value);
  if (const auto value = arguments.take("end")) options.end = moment(*value);
  if (const auto value = arguments.take("runs")) options.runs = static_cast<std::uint64_t>(value->number);
  if (const auto value = arguments.take("jitter")) options.jitter = millis(*value);
  const std::map<std::string, delayq::Overlap> overlaps{{"", delayq::Overlap::allow},
                                                        {"allow", delayq::Overlap::allow},
                                                        {"skip", delayq::Overlap::skip},
                                                        {"replace", delayq::Overlap::replace}};
  const std::map<std::string, delayq::Missed> misses{{"", delayq::Missed::one},
                                                     {"one", delayq::Missed::one},
                                                     {"skip", delayq::Missed::skip},
                                                     {"all", delayq::Missed::all}};
  options.overlap = overlaps.at(arguments.text("overlap"));
  options.missed = misses.at(arguments.text("missed"));
  options.job = options_of(arguments);
  if (is_cron) return of_schedule(client.cron(name, arguments.text("rule"), topic, payload, options));
  return of_schedule(client.every(name, millis(*arguments.take("interval")), topic, payload, options));
}

Scenario::Result Scenario::on_schedule(const std::string& verb, Arguments& arguments,
                                       delayq::Client& client) {
  if (verb == "every" || verb == "cron") return schedule(client, arguments, verb == "cron");
  if (verb == "next") {
    const auto count_said = arguments.take("count");
    const std::uint32_t count = count_said ? static_cast<std::uint32_t>(count_said->number) : 5;
    std::optional<delayq::Time> from;
    if (const auto value = arguments.take("from")) from = moment(*value);
    if (const auto at = arguments.take("from_at")) {
      std::tm parts{};
      std::istringstream text(at->text);
      if (!(text >> std::get_time(&parts, "%Y-%m-%dT%H:%M:%SZ")))
        throw std::logic_error("from_at that the runner does not know: " + at->text);
      from = delayq::Time(std::chrono::seconds(::timegm(&parts)));
    }
    std::vector<delayq::Occurrence> found;
    if (const std::string name = arguments.text("name"); !name.empty()) {
      found = client.next(name, count);
    } else {
      delayq::Rule rule{.cron = arguments.text("rule"), .zone = arguments.text("zone")};
      if (const auto interval = arguments.take("interval")) rule.every = millis(*interval);
      found = client.next(rule, count, from);
    }
    Json list{.type = Json::Type::kArray};
    for (const delayq::Occurrence& each : found)
      list.items.push_back(Json().set("at", Json::of(ms_of(each.at))).set("local", text_or_null(each.local)));
    return list;
  }
  const std::string name = arguments.text("name");
  if (verb == "get_schedule") {
    const auto found = client.get_schedule(name);
    return found ? of_schedule(*found) : Json();
  }
  if (verb == "pause_schedule") return of_schedule(client.pause_schedule(name));
  if (verb == "resume_schedule") return of_schedule(client.resume_schedule(name));
  if (verb == "run_schedule") {
    const delayq::ScheduleRun run = client.run_schedule(name);
    return Json()
        .set("topic", text_or_null(run.topic))
        .set("id", text_or_null(run.id))
        .set("state", text_or_null(run.state))
        .set("due_at", Json::of(ms_of(run.due_at)));
  }
  if (verb != "remove_schedule") throw std::logic_error("a verb that the runner does not know: " + verb);
  client.remove_schedule(name);
  return Json();
}

Scenario::Result Scenario::in_handler(const std::string& verb, Arguments& arguments, Work* work,
                                      const delayq::Job* job) {
  if (verb == "job") {
    Json json;
    json.set("topic", text_or_null(job->topic())).set("id", text_or_null(job->id()));
    json.set("payload", Json::of(std::string_view(job->payload())))
        .set("attempt", Json::of(job->attempt() * 1.0));
    json.set("due_at", Json::of(ms_of(job->due_at())))
        .set("lease_until", Json::of(ms_of(job->lease_until())));
    return json.set("headers", of_headers(job->headers()));
  }
  if (verb == "signal" || verb == "wait") {
    const std::string name = arguments.text("name");
    std::unique_lock lock(work->mutex);
    if (verb == "signal") {
      work->signals.insert(name);
      work->changed.notify_all();
    } else if (!work->changed.wait_for(lock, kDeadline, [&] { return work->signals.contains(name); })) {
      ADD_FAILURE() << "never signalled: " << name;
    }
    return Json();
  }
  if (verb == "wait_cancelled") {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, job->stop_token(), kDeadline, [] { return false; });
    const auto reason = job->stop_reason();
    EXPECT_EQ(reason ? name_of(*reason) : "not told", arguments.text("reason"));
    return Json();
  }
  if (verb == "stop") {
    work->worker->stop();
    return Json();
  }
  if (verb != "fail" && verb != "dead" && verb != "retry_in") return std::nullopt;
  const std::string text = arguments.text(verb == "dead" ? "reason" : "text");
  const auto delay_said = arguments.take("delay");
  arguments.end();
  if (verb == "fail") throw Ending{[text] { throw std::runtime_error(text); }};
  if (verb == "dead") throw Ending{[text] { throw delayq::Dead(text); }};
  if (verb == "retry_in") {
    const milliseconds delay = millis(*delay_said);
    throw Ending{[text, delay] { throw delayq::RetryIn(delay, text); }};
  }
  return std::nullopt;
}

Scenario::Result Scenario::execute(const std::string& verb, Arguments& arguments, Work* work,
                                   const delayq::Job* job) {
  if (job != nullptr) {
    if (Result result = in_handler(verb, arguments, work, job)) return result;
  }
  delayq::Client client = this->client(arguments.text("client"));
  if (verb == "enqueue") {
    const delayq::NewJob said = job_of(arguments);
    return Json::of(std::string_view(client.enqueue(said.topic, said.id, said.payload, said.options)));
  }
  if (verb == "enqueue_many") {
    std::vector<delayq::NewJob> jobs;
    const Json said = *arguments.take("jobs");
    for (const Json& each : said.items) {
      Arguments own(*this, each);
      jobs.push_back(job_of(own));
      own.end();
    }
    Json list{.type = Json::Type::kArray};
    for (const auto& result : client.enqueue_many(jobs)) list.items.push_back(of_result(result));
    return list;
  }
  if (verb == "together") {
    const Json steps = *arguments.take("steps");
    std::vector<std::thread> threads;
    for (const Json& each : steps.items) threads.emplace_back([this, &each] { step(each); });
    for (std::thread& thread : threads) thread.join();
    return Json();
  }
  if (verb == "work") {
    this->work(arguments, client);
    return Json();
  }
  if (verb == "cancel_group")
    return Json::of(static_cast<double>(client.cancel_group(arguments.text("group"))));
  const bool is_about_job = verb == "dequeue" || verb == "reschedule" || verb == "get";
  if (!is_about_job) return on_schedule(verb, arguments, client);
  const std::string topic = arguments.text("topic");
  const std::string id = arguments.text("id");
  if (verb == "dequeue") return Json::of(name_of(client.dequeue(topic, id)));
  if (verb == "get") {
    const auto found = client.get(topic, id);
    return found ? of_job(*found) : Json();
  }
  delayq::When when;
  if (const auto value = arguments.take("process_in")) when.process_in = millis(*value);
  if (const auto value = arguments.take("process_at")) when.process_at = moment(*value);
  client.reschedule(topic, id, when);
  return Json();
}

void Scenario::step(const Json& step, Work* work, const delayq::Job* job) {
  Arguments arguments(*this, step);
  const std::string where = step.dump().substr(0, 300);
  const std::string verb = arguments.text("do");
  const Json* const expected = step.find("result");
  arguments.take("result");
  const std::string save = arguments.text("save");
  const std::string error = verb == "work" ? "" : arguments.text("error");
  const std::string message = arguments.text("message");
  const std::optional<Json> retryable = arguments.take("retryable");
  try {
    const Result result = execute(verb, arguments, work, job);
    arguments.end();
    if (!error.empty()) {
      ADD_FAILURE() << "it did not fail: " << where;
    }
    if (expected != nullptr) expect(*expected, *result, where);
    const std::lock_guard lock(mutex_);
    if (!save.empty()) saved_[save] = *result;
  } catch (const delayq::Error& failure) {
    if (error.empty()) {
      ADD_FAILURE() << name_of(failure.code()) << ": " << failure.what() << ": " << where;
      return;
    }
    EXPECT_EQ(name_of(failure.code()), error) << failure.what() << ": " << where;
    EXPECT_NE(std::string_view(failure.what()).find(message), std::string_view::npos)
        << failure.what() << ": " << where;
    if (retryable) {
      EXPECT_EQ(failure.retryable(), retryable->boolean) << where;
    }
  }
}

void Scenario::handle(Work& work, const Json& lists, const delayq::Job& job) {
  std::size_t run = 0;
  {
    const std::lock_guard lock(work.mutex);
    run = work.begun[job.topic()]++;
  }
  if (run >= lists.items.size()) {
    ADD_FAILURE() << "one run too many of " << job.topic() << "/" << job.id();
    return;
  }
  std::function<void()> ending = [] {};
  try {
    for (const Json& each : lists.items[run].items) step(each, &work, &job);
  } catch (const Ending& end) {
    ending = end.throws;
  } catch (const std::exception& problem) {
    ADD_FAILURE() << problem.what();
  }
  {
    const std::lock_guard lock(work.mutex);
    if (--work.left == 0) work.worker->stop();
  }
  ending();
}

void Scenario::work(Arguments& arguments, delayq::Client client) {
  delayq::WorkerOptions options;
  if (const auto said = arguments.take("options")) {
    for (const auto& [name, value] : said->members) {
      if (name == "concurrency") {
        options.concurrency = static_cast<unsigned>(value.number);
      } else if (name == "lease") {
        options.lease = millis(value);
      } else if (name == "wait") {
        options.wait = millis(value);
      } else if (name == "grace") {
        options.grace = millis(value);
      } else {
        ADD_FAILURE() << "an option that the runner does not know: " << name;
      }
    }
  }
  const std::string error = arguments.text("error");
  const Json handlers = *arguments.take("handlers");
  Work work;
  delayq::Worker worker(std::move(client), options);
  work.worker = &worker;
  for (const auto& [topic, lists] : handlers.members) {
    work.left += lists.items.size();
    worker.handle(topic, [this, &work, &lists = lists](const delayq::Job& job) { handle(work, lists, job); });
  }
  std::future<void> run = std::async(std::launch::async, [&] { worker.run(); });
  if (run.wait_for(kDeadline) != std::future_status::ready) {
    ADD_FAILURE() << "the work did not end";
    worker.stop();
  }
  try {
    run.get();
    EXPECT_EQ(error, "") << "the worker did not fail";
    EXPECT_EQ(work.left, 0U);
  } catch (const delayq::Error& failure) {
    EXPECT_EQ(name_of(failure.code()), error) << failure.what();
  }
}

bool Scenario::expect_special(const Json& expected, const Json& actual, const std::string& where) {
  if (expected.members.size() != 1) return false;
  const auto& [name, value] = expected.members.front();
  if (name == "near") {
    EXPECT_NEAR(actual.number, now_ms() + value.number, kNear) << where;
    EXPECT_EQ(actual.type, Json::Type::kNumber) << where;
  } else if (name == "uuid") {
    EXPECT_TRUE(actual.text.size() == 36 && actual.text[14] == '7' && actual.text[8] == '-') << actual.text;
  } else if (name == "contains") {
    EXPECT_NE(actual.text.find(resolve(value).text), std::string::npos) << actual.text << ": " << where;
  } else if (name == "bytes_at_most") {
    EXPECT_LE(static_cast<double>(actual.text.size()), value.number) << where;
  } else if (name == "json") {
    EXPECT_TRUE(Json::parse(actual.text) == value) << actual.text << ": " << where;
  } else {
    return false;
  }
  return true;
}

void Scenario::expect(const Json& said, const Json& actual, const std::string& where) {
  const Json expected = resolve(said);
  if (expected.is_object()) {
    if (expect_special(expected, actual, where)) return;
    ASSERT_TRUE(actual.is_object() || expected.members.empty()) << actual.dump() << ": " << where;
    for (const auto& [name, value] : expected.members) {
      const Json* const found = actual.find(name);
      expect(value, found == nullptr ? Json() : *found, where + " " + name);
    }
    return;
  }
  if (expected.type == Json::Type::kArray) {
    ASSERT_EQ(expected.items.size(), actual.items.size()) << actual.dump() << ": " << where;
    for (std::size_t i = 0; i < expected.items.size(); ++i) expect(expected.items[i], actual.items[i], where);
    return;
  }
  EXPECT_TRUE(expected == actual) << "is " << actual.dump().substr(0, 300) << ": " << where;
}

}  // namespace

Json read_spec(const std::string& file) {
  Json spec = Json::parse(read_file(DELAYQ_SOURCE_FOLDER "/sdk/spec/" + file));
  for (const auto& each : spec.members) {
    const bool is_known = each.first == "about" || each.first == "server" || each.first == "scenarios" ||
                          (each.first == "calls" && file == "wire.json");
    EXPECT_TRUE(is_known) << file << ": a key that the runner does not know: " << each.first;
  }
  return spec;
}

std::vector<std::string> spec_files() {
  std::vector<std::string> files;
  for (const auto& each : std::filesystem::directory_iterator(DELAYQ_SOURCE_FOLDER "/sdk/spec")) {
    const std::string name = each.path().filename().string();
    if (name.ends_with(".json") && name != "replies.json" && name != "wire.json") files.push_back(name);
  }
  std::sort(files.begin(), files.end());
  return files;
}

delayq::ClientOptions client_options(const Json& said) {
  delayq::ClientOptions options;
  for (const auto& [name, value] : said.members) {
    if (name == "token") {
      options.token = value.text;
    } else if (name == "token_name") {
      options.token_name = value.text;
    } else if (name == "retry_for") {
      options.retry_for = millis(value);
    } else if (name == "timeout") {
      options.timeout = millis(value);
    } else if (name == "connect_timeout") {
      options.connect_timeout = millis(value);
    } else if (name == "tls") {
      options.tls.enabled = value.boolean;
    } else {
      ADD_FAILURE() << "an option that the runner does not know: " << name;
    }
  }
  return options;
}

void run_scenario(const Json& scenario, const MakeClient& make_client) {
  const Json* const clients = scenario.find("clients");
  const Json none{.type = Json::Type::kObject};
  for (const auto& each : scenario.members)
    EXPECT_TRUE(each.first == "name" || each.first == "clients" || each.first == "steps") << each.first;
  Scenario run(clients == nullptr ? none : *clients, make_client);
  for (const Json& step : scenario.find("steps")->items) {
    run.step(step);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace sdk_test
