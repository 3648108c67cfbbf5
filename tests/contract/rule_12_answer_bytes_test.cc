// Rule 12, for hand-over: a reply has at least one job, and no further one once it has a certain number of
// bytes. The other jobs stay ready for the next take.
#include <optional>

#include "tests/contract/queue_contract.h"

namespace delayq::contract {
namespace {

constexpr size_t kKib = 1'024;
constexpr size_t kMib = 1'024 * kKib;

// ---- the bound of the engine

class Rule12TakeBytes : public EngineContract {
 protected:
  struct Answer {
    std::vector<std::string> ids;
    bool is_cut = false;

    bool operator==(const Answer&) const = default;
    friend void PrintTo(const Answer& answer, std::ostream* out) {
      for (const std::string& id : answer.ids) *out << id << ' ';
      *out << (answer.is_cut ? "(cut)" : "(all)");
    }
  };
  using Late = std::shared_ptr<std::optional<Answer>>;

  /// Jobs of 10 KiB each.
  void push(std::string_view ids, bool is_called_back = false) {
    for (const char id : ids) {
      JobSpec job = JobSpec("t", std::string(1, id)).with_body(std::string(10 * kKib, id));
      engine_.push(is_called_back ? job.called_back() : job);
    }
  }

  TakeRequest request(uint32_t count, uint64_t max_bytes = 25 * kKib) {
    TakeRequest request;
    request.topic = "t";
    request.count = count;
    request.max_bytes = max_bytes;
    request.lease_until = engine_.now() + std::chrono::minutes{1};
    return request;
  }

  Late begin_take(const TakeRequest& request) {
    auto late = std::make_shared<std::optional<Answer>>();
    engine_.engine().take(engine_.now(), request, [late](const Result<TakeAnswer>& taken) {
      Answer answer{{}, taken.value().is_cut};
      for (const TakenJob& each : taken->jobs) answer.ids.emplace_back(each.job.id);
      *late = answer;
    });
    return late;
  }
  Answer take(const TakeRequest& request) {
    const Late late = begin_take(request);
    engine_.settle();
    return late->value();
  }
};
DELAYQ_OVER_ALL_ENGINES(Rule12TakeBytes);

TEST_P(Rule12TakeBytes, WhatIsTooMuchStaysInLine) {
  push("abcde");
  EXPECT_EQ(take(request(100)), (Answer{{"a", "b", "c"}, true}));
  EXPECT_EQ(engine_.count("t", JobState::kReady), 2U);
  EXPECT_EQ(engine_.get("t", "d")->attempts, 0U);
  EXPECT_EQ(take(request(100)), (Answer{{"d", "e"}, false}));
  EXPECT_EQ(take(request(100)), (Answer{{}, false}));
}

TEST_P(Rule12TakeBytes, OneJobIsNeverTooMuch) {
  push("abc");
  EXPECT_EQ(take(request(100, 1)), (Answer{{"a"}, true}));
  EXPECT_EQ(take(request(100, 1)), (Answer{{"b"}, true}));
  EXPECT_EQ(take(request(100, 1)), (Answer{{"c"}, false})) << "there is no more";
}

TEST_P(Rule12TakeBytes, TheCountMayEndItFirst) {
  push("abcde");
  EXPECT_EQ(take(request(2)), (Answer{{"a", "b"}, false}));
  EXPECT_EQ(take(request(3)), (Answer{{"c", "d", "e"}, false})) << "it has all it asked for";
}

TEST_P(Rule12TakeBytes, ALimitMayEndItFirst) {
  push("abcde");
  TakeRequest limited = request(100);
  limited.max_reserved = 2;
  EXPECT_EQ(take(limited), (Answer{{"a", "b"}, false}));
}

TEST_P(Rule12TakeBytes, AutoAckTakesNoMore) {
  push("abcde");
  TakeRequest for_good = request(100);
  for_good.auto_ack = true;
  for_good.keep_done = kKeepAll;
  EXPECT_EQ(take(for_good), (Answer{{"a", "b", "c"}, true}));
  EXPECT_EQ(engine_.count("t", JobState::kDone), 3U);
  EXPECT_EQ(engine_.count("t", JobState::kReady), 2U);
  EXPECT_EQ(take(for_good), (Answer{{"d", "e"}, false}));
}

TEST_P(Rule12TakeBytes, EachOutletIsBounded) {
  push("abcd", true);
  push("xy");
  TakeRequest called = request(100);
  called.outlet = Outlet::kCallback;
  EXPECT_EQ(take(called), (Answer{{"a", "b", "c"}, true}));
  EXPECT_EQ(take(called), (Answer{{"d"}, false}));
  EXPECT_EQ(take(request(100)), (Answer{{"x", "y"}, false}));
}

TEST_P(Rule12TakeBytes, JobsThatHaveJustFallenDueAreBoundedToo) {
  engine_.tick_before_verbs(false);
  for (const char* id : {"a", "b", "c", "d"})
    engine_.push(JobSpec("t", id).due_at(at(5)).with_body(std::string(10 * kKib, 'x')));
  engine_.go_to(at(5));
  if (GetParam().cools_all) engine_.tick();  // it fetches the bodies, which no other engine needs
  EXPECT_EQ(take(request(100)), (Answer{{"a", "b", "c"}, true}));
  EXPECT_EQ(take(request(100)), (Answer{{"d"}, false}));
}

/// Takes at the same moment may be joined to one call. All get a reply, in their order. A take that gets
/// nothing because others used up the bytes has `is_cut` set: it must try again.
TEST_P(Rule12TakeBytes, ManyAtOnceAllComeToTheirs) {
  push("abcdefgh");
  std::vector<std::string> handed_out;
  for (int round = 0; handed_out.size() < 8; ++round) {
    ASSERT_LT(round, 8) << "each round hands out something";
    std::vector<Late> takes;
    for (int i = 0; i < 4; ++i) takes.push_back(begin_take(request(2)));
    engine_.settle();
    bool was_cut = false;
    for (const Late& take : takes) {
      ASSERT_TRUE(take->has_value());
      const Answer& answer = **take;
      EXPECT_TRUE(answer.is_cut || answer.ids.size() == 2 || handed_out.size() == 8) << "told that it is dry";
      EXPECT_FALSE(was_cut && !answer.ids.empty()) << "it got what somebody before it was not given";
      was_cut = was_cut || answer.is_cut;
      handed_out.insert(handed_out.end(), answer.ids.begin(), answer.ids.end());
    }
  }
  EXPECT_THAT(handed_out, ElementsAre("a", "b", "c", "d", "e", "f", "g", "h"));
}

// ---- the bound of the queue

class Rule12PopBytes : public QueueContract {
 protected:
  Rule12PopBytes() {
    QueueConfig config;
    config.limits.body_bytes = 4 * kMib;
    restart(std::move(config));
  }

  /// Jobs of 3 MiB each: three fit into one reply.
  void push(std::string_view ids, std::string_view topic = "t", PushRequest job = {}) {
    const std::string body(3 * kMib, 'x');
    for (const char& id : ids) {
      job.topic = topic;
      job.id = std::string_view(&id, 1);
      job.body = body;
      queue_->push(job);
    }
  }
  std::vector<std::string> pop(std::vector<std::string_view> topics = {"t"}, bool auto_ack = false) {
    return ids_of(queue_->pop({.topics = topics, .count = 100, .auto_ack = auto_ack}));
  }
};
DELAYQ_OVER_ALL_ENGINES(Rule12PopBytes);

TEST_P(Rule12PopBytes, TheNextPopHasTheRest) {
  static_assert(Limits::kPopBytes == 8 * kMib);
  push("abcdefg");
  EXPECT_THAT(pop(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(pop(), ElementsAre("d", "e", "f"));
  EXPECT_THAT(pop(), ElementsAre("g"));
  EXPECT_THAT(pop(), IsEmpty());
}

TEST_P(Rule12PopBytes, OfAutoAckedJobsNoneIsLost) {
  push("abcd");
  EXPECT_THAT(pop({"t"}, true), ElementsAre("a", "b", "c"));
  EXPECT_EQ(queue_->state_of("t", "d"), JobState::kReady);
  EXPECT_THAT(pop({"t"}, true), ElementsAre("d"));
}

TEST_P(Rule12PopBytes, SeveralTopicsShareIt) {
  push("ab", "first");
  push("cde", "second");
  push("f", "third");
  EXPECT_THAT(pop({"first", "second", "third"}), ElementsAre("a", "b", "c"));
  EXPECT_THAT(pop({"first", "second", "third"}), ElementsAre("d", "e", "f"));
  push("ghi", "first");
  push("j", "second");
  EXPECT_THAT(pop({"first", "second", "third"}), ElementsAre("g", "h", "i")) << "the first topic filled it";
  EXPECT_THAT(pop({"first", "second", "third"}), ElementsAre("j"));
}

TEST_P(Rule12PopBytes, ThoseInLineHaveTheRest) {
  queue_->pause("t");
  std::vector<PendingPop> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.push_back(queue_->begin_pop("t", seconds{30}, 100));
    queue_->run();
  }
  push("abcdefg");
  queue_->resume("t");
  queue_->run();
  EXPECT_THAT(ids_of(waiting[0].jobs()), ElementsAre("a", "b", "c"));
  std::vector<std::string> others;
  for (const PendingPop& pop : {waiting[1], waiting[2]}) {
    for (const std::string& id : ids_of(pop.jobs())) others.push_back(id);
  }
  EXPECT_THAT(others, ElementsAre("d", "e", "f", "g"));
  EXPECT_FALSE(waiting[3].answered());
  push("h");
  queue_->run();
  EXPECT_THAT(ids_of(waiting[3].jobs()), ElementsAre("h"));
}

TEST_P(Rule12PopBytes, NobodyGoesHomeEmptyWhileJobsAreReady) {
  push("abcdefg");
  std::vector<PendingPop> pops;
  for (int i = 0; i < 4; ++i) pops.push_back(queue_->begin_pop("t", Millis{}, 2));
  queue_->run();
  std::vector<std::string> handed_out;
  for (const PendingPop& pop : pops) {
    EXPECT_FALSE(pop.jobs().empty());
    for (const std::string& id : ids_of(pop.jobs())) handed_out.push_back(id);
  }
  const std::vector<std::string> all{"a", "b", "c", "d", "e", "f", "g"};
  EXPECT_GE(handed_out.size(), 4U);
  EXPECT_TRUE(std::equal(handed_out.begin(), handed_out.end(), all.begin())) << "out of order";
}

TEST_P(Rule12PopBytes, WhatARateAllowedAndDidNotFitIsNotLost) {
  queue_->set("t", {.rate = Rate{5, hours{1}}});
  push("abcdef");
  EXPECT_THAT(pop(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(pop(), ElementsAre("d", "e")) << "five an hour";
  EXPECT_THAT(pop(), IsEmpty());
}

class Told final : public DeliveryListener {
 public:
  void on_deliverable(std::string_view topic, Outlet /*outlet*/) override { topics_.emplace_back(topic); }
  std::vector<std::string> topics() { return std::exchange(topics_, {}); }

 private:
  std::vector<std::string> topics_;
};

TEST_P(Rule12PopBytes, WhoDeliversIsToldThatThereIsMore) {
  Told told;
  queue_->queue().set_delivery_listener(&told);
  push("abcde", "t", {.options = {.callback = "http://receiver.example/hook"}});
  queue_->run();
  const DeliveryRequest request{.topic = "t", .outlet = Outlet::kCallback, .count = 100};
  const auto take = [&] {
    told.topics();
    return ids_of(support::seen(queue_->must<PopAnswer>("take_for_delivery", [&](auto reply) {
      queue_->queue().take_for_delivery(queue_->now(), request, std::move(reply));
    })));
  };
  EXPECT_THAT(take(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(told.topics(), ElementsAre("t"));
  EXPECT_THAT(take(), ElementsAre("d", "e"));
  EXPECT_THAT(told.topics(), IsEmpty());
  queue_->queue().set_delivery_listener(nullptr);
}

}  // namespace
}  // namespace delayq::contract
