#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/contract/engine_contract.h"
#include "tests/support/queue_driver.h"

namespace delayq::contract {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using support::PendingPop;
using testing::HasSubstr;

/// A test of the rules of the queue: they must hold over every engine.
class QueueContract : public testing::TestWithParam<EngineEntry> {
 protected:
  /// Makes another queue over the same jobs: a restart of the server and of the engine, which may still have
  /// replies for the old queue. (An engine that is not durable has no jobs afterwards.)
  void restart(QueueConfig config = {}) {
    const Moment now = queue_->now();
    queue_.reset();
    if (GetParam().durable) subject_->reopen();
    queue_ = make_queue(std::move(config));
    queue_->go_to(now);
  }

  /// Pushes a ready job and pops it.
  Taken reserve(std::string_view id) {
    queue_->push({.topic = "t", .id = id});
    return queue_->pop_one("t");
  }

  Error refused(const PushRequest& request) {
    const Result<PushReceipt> receipt = queue_->try_push(request);
    return receipt.ok() ? Error{} : receipt.error();
  }

  std::unique_ptr<support::QueueDriver> make_queue(QueueConfig config) {
    auto queue = std::make_unique<support::QueueDriver>(subject_->engine(), std::move(config),
                                                        [this] { return subject_->pump(); });
    if (GetParam().ticks_first) queue->run_before_verbs();
    return queue;
  }

  std::unique_ptr<EngineUnderTest> subject_ = GetParam().make();
  std::unique_ptr<support::QueueDriver> queue_ = make_queue({});
};

}  // namespace delayq::contract
