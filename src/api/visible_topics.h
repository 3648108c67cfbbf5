#pragma once

#include "api/access.h"
#include "queue/queue.h"

namespace delayq::api {

/// A page of the topics that the caller may know of. A cursor is the name of a topic, so it is always one of
/// those, too. `queue` and `access` must outlive the answer.
void visible_topics(Queue& queue, const Access& access, const Caller& caller, Moment now,
                    std::string_view cursor, uint32_t limit, Reply<TopicSummaries> reply);

}  // namespace delayq::api
