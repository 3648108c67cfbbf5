#include "tests/simulation/producer.h"

#include <fmt/format.h>

namespace delayq::simulation {

namespace {

/// {"tenant": "acme"}, as queue/job_headers.h encodes it.
constexpr std::string_view kHeaders =
    "\x93\x04\xa6"
    "tenant\xa4"
    "acme";

}  // namespace

/// A push request with the texts that it points to.
struct Producer::Draft {
  std::string topic;
  std::string id;
  std::string group;
  std::string body;
  PushRequest request;
  bool is_valid = true;

  /// The request is copied around before it is used.
  PushRequest view() const {
    PushRequest viewed = request;
    viewed.topic = topic;
    viewed.body = body;
    if (!id.empty() || !is_valid) viewed.id = id;
    if (!group.empty()) viewed.group = group;
    return viewed;
  }
};

Producer::Draft Producer::draft() {
  Draft draft;
  draft.topic = scene_.topic();
  if (scene_.chance(90)) draft.id = scene_.id();
  if (scene_.chance(40)) draft.group = scene_.group();
  draft.body = scene_.body();
  PushRequest& request = draft.request;
  if (scene_.chance(75)) {
    request.delay = scene_.delay();
  } else if (scene_.chance(50)) {
    request.at = scene_.now() + scene_.delay() - Millis{5'000};  // the past is fine
  }
  if (scene_.chance(30)) request.priority = static_cast<uint32_t>(scene_.random().below(3) * 1'000);
  if (scene_.chance(15)) request.options.attempts = static_cast<uint32_t>(scene_.random().below(4));
  if (scene_.chance(10)) request.options.backoff = StepBackoff{{Millis{5}, Millis{50}}};
  if (scene_.chance(10)) request.options.lease = Millis{100 + scene_.random().below(900)};
  if (scene_.chance(5)) {
    request.options.content_type = "text/plain";
    request.options.headers = kHeaders;
  }
  if (scene_.chance(20)) request.options.callback = "http://receiver.example/";
  const uint64_t policy = scene_.random().below(10);
  request.on_conflict = policy < 5   ? OnConflict::kReplace
                        : policy < 7 ? OnConflict::kKeep
                                     : OnConflict::kReject;
  request.unique_across_topics = scene_.chance(10);
  if (scene_.chance(2)) {  // nothing of it may be stored
    draft.is_valid = false;
    draft.id = "an id\nof two lines";
  }
  return draft;
}

void Producer::push() {
  std::vector<Draft> drafts;
  const uint64_t count = scene_.chance(80) ? 1 : scene_.random().between(2, 6);
  for (uint64_t i = 0; i < count; ++i) drafts.push_back(draft());
  std::vector<PushRequest> requests;
  for (const Draft& each : drafts) {
    requests.push_back(each.view());
    scene_.say([&] {
      return fmt::format(
          "push {}/{} {} delay={} at={} conflict={} group={} priority={} {}", each.topic, each.id,
          each.body.substr(0, 24), each.request.delay ? each.request.delay->count() : -1,
          each.request.at ? to_unix_ms(*each.request.at) : -1, static_cast<int>(each.request.on_conflict),
          each.group, each.request.priority.value_or(0), each.request.unique_across_topics ? "unique" : "");
    });
  }
  const Scene::Ticket ticket = scene_.ask("push");
  scene_.queue().push(scene_.now(), requests,
                      [this, ticket, drafts = std::move(drafts)](Result<PushReport> report) {
                        if (!scene_.answered(ticket)) return;
                        if (!report.ok()) return scene_.check_error("push", report.error());
                        check_receipts(drafts, *report);
                      });
}

void Producer::check_receipts(const std::vector<Draft>& drafts, const PushReport& report) {
  if (report.jobs.size() != drafts.size()) return scene_.fail("push", "a report of another length");
  for (size_t i = 0; i < drafts.size(); ++i) {
    const Result<PushReceipt>& receipt = report.jobs[i];
    if (!receipt.ok()) {
      const ErrorCode code = receipt.error().code;
      if (code == ErrorCode::kConflict || (code == ErrorCode::kInvalid && !drafts[i].is_valid)) continue;
      scene_.check_error("push", receipt.error());
    } else if (!drafts[i].is_valid) {
      scene_.fail("push", "took an invalid job");
    } else if (receipt->outcome != PushOutcome::kKept &&
               !scene_.world().checked().has_promised(drafts[i].body.substr(0, 24))) {
      scene_.fail("push", "answered before the engine did");
    }
  }
}

void Producer::restore() {
  const std::string topic = scene_.topic();
  const std::string id = scene_.id();
  const std::string group = scene_.group();
  const std::string body = scene_.body();
  RestoreItem item;
  item.job.topic = topic;
  item.job.id = id;
  item.job.body = body;
  if (scene_.chance(40)) item.job.group = group;
  if (scene_.chance(50)) item.job.outcome = "restored: connection refused";
  item.job.state = static_cast<JobState>(scene_.random().below(kJobStateCount));
  item.job.priority = static_cast<uint32_t>(scene_.random().below(3) * 1'000);
  item.job.attempts = static_cast<uint32_t>(scene_.random().below(4));
  item.job.due = scene_.now() + scene_.delay() - Millis{5'000};
  item.job.pushed = scene_.now() - Millis{scene_.random().below(100'000)};
  if (!is_live(item.job.state)) item.job.until = scene_.now() + Millis{scene_.random().below(60'000)};
  if (scene_.chance(20)) item.options.attempts = static_cast<uint32_t>(scene_.random().below(4));
  item.on_conflict = static_cast<OnConflict>(scene_.random().below(3));
  scene_.say([&] {
    return fmt::format("restore {}/{} {} {} due={} until={} conflict={}", topic, id, name_of(item.job.state),
                       body.substr(0, 24), to_unix_ms(item.job.due), to_unix_ms(item.job.until),
                       static_cast<int>(item.on_conflict));
  });
  const Scene::Ticket ticket = scene_.ask("restore");
  scene_.queue().restore(scene_.now(), {&item, 1},
                         [this, ticket](const Result<std::vector<Result<RestoreReceipt>>>& receipts) {
                           if (!scene_.answered(ticket)) return;
                           if (!receipts.ok()) return scene_.check_error("restore", receipts.error());
                           const Result<RestoreReceipt>& receipt = receipts->front();
                           if (!receipt.ok() && receipt.error().code != ErrorCode::kConflict)
                             scene_.check_error("restore", receipt.error());
                         });
}

void Producer::cancel() {
  std::vector<std::pair<std::string, std::string>> names;
  const uint64_t count = scene_.chance(80) ? 1 : scene_.random().between(2, 4);
  for (uint64_t i = 0; i < count; ++i) names.emplace_back(scene_.topic(), scene_.id());
  std::vector<JobRef> jobs;
  for (const auto& name : names) {
    jobs.push_back({name.first, name.second});
    scene_.say([&] { return fmt::format("cancel {}/{}", name.first, name.second); });
  }
  const Scene::Ticket ticket = scene_.ask("cancel");
  scene_.queue().cancel(scene_.now(), jobs,
                        [this, ticket](Result<std::vector<Result<CancelOutcome>>> answer) {
                          if (!scene_.answered(ticket)) return;
                          if (!answer.ok()) return scene_.check_error("cancel", answer.error());
                          for (const Result<CancelOutcome>& each : *answer) {
                            if (!each.ok()) scene_.check_error("cancel", each.error());
                          }
                        });
}

void Producer::cancel_by_id() {
  const std::string id = scene_.id();
  scene_.say([&] { return fmt::format("cancel by id {}", id); });
  const Scene::Ticket ticket = scene_.ask("cancel_by_id");
  scene_.queue().cancel_by_id(scene_.now(), id, [this, ticket](const Result<CancelOutcome>& answer) {
    if (!scene_.answered(ticket)) return;
    if (!answer.ok() && answer.error().code != ErrorCode::kConflict) {
      scene_.check_error("cancel_by_id", answer.error());
    }
  });
}

void Producer::cancel_group() {
  const std::string group = scene_.group();
  scene_.say([&] { return fmt::format("cancel group {}", group); });
  const Scene::Ticket ticket = scene_.ask("cancel_group");
  scene_.queue().cancel_group(scene_.now(), group, kAllTopics,
                              [this, ticket](const Result<GroupCancelAnswer>& answer) {
                                if (!scene_.answered(ticket)) return;
                                if (!answer.ok()) scene_.check_error("cancel_group", answer.error());
                              });
}

void Producer::reschedule() {
  const std::string topic = scene_.topic();
  const std::string id = scene_.id();
  RescheduleItem item{{topic, id}, {}, {}};
  if (scene_.chance(70)) {
    item.delay = scene_.delay();
  } else {
    item.at = scene_.now() + scene_.delay() - Millis{5'000};
  }
  scene_.say([&] {
    return fmt::format("reschedule {}/{} delay={} at={}", topic, id, item.delay ? item.delay->count() : -1,
                       item.at ? to_unix_ms(*item.at) : -1);
  });
  const Scene::Ticket ticket = scene_.ask("reschedule");
  scene_.queue().reschedule(scene_.now(), {&item, 1},
                            [this, ticket](Result<std::vector<Result<RescheduleOutcome>>> answer) {
                              if (!scene_.answered(ticket)) return;
                              if (!answer.ok()) return scene_.check_error("reschedule", answer.error());
                              for (const Result<RescheduleOutcome>& each : *answer) {
                                if (!each.ok()) scene_.check_error("reschedule", each.error());
                              }
                            });
}

}  // namespace delayq::simulation
