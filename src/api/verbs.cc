#include "api/verbs.h"

#include <memory>
#include <utility>

namespace delayq::api {

namespace {

struct Walk {
  Queue& queue;
  const Access& access;
  Caller caller;
  Moment now;
  uint32_t limit;
  Reply<TopicSummaries> reply;
};

void go_on(std::unique_ptr<Walk> walk, std::string_view cursor) {
  Walk& here = *walk;
  here.queue.topics(here.now, cursor, here.limit,
                    [walk = std::move(walk)](Result<TopicSummaries> page) mutable {
                      if (!page.ok()) return walk->reply(std::move(page));
                      std::erase_if(page->topics, [&](const TopicSummary& topic) {
                        return !walk->access.covers(walk->caller, topic.topic);
                      });
                      if (page->topics.empty() && !page->cursor.empty()) {
                        const std::string next = std::move(page->cursor);
                        return go_on(std::move(walk), next);
                      }
                      if (!page->cursor.empty()) page->cursor = page->topics.back().topic;
                      walk->reply(std::move(page));
                    });
}

}  // namespace

Error refusal_of(RescheduleOutcome outcome) {
  switch (outcome) {
    case RescheduleOutcome::kMoved:
      break;
    case RescheduleOutcome::kReserved:
      return {ErrorCode::kConflict, {}, "the job is being worked on", {}};
    case RescheduleOutcome::kDone:
      return {ErrorCode::kConflict, {}, "the job is done", {}};
    case RescheduleOutcome::kUnknown:
      return {ErrorCode::kNotFound, {}, "there is no such job", {}};
  }
  return {ErrorCode::kInternal, {}, "a job that was moved", {}};
}

void visible_topics(Queue& queue, const Access& access, const Caller& caller, Moment now,
                    std::string_view cursor, uint32_t limit, Reply<TopicSummaries> reply) {
  if (access.covers_all(caller)) return queue.topics(now, cursor, limit, std::move(reply));
  go_on(std::make_unique<Walk>(Walk{queue, access, caller, now, limit, std::move(reply)}), cursor);
}

}  // namespace delayq::api
