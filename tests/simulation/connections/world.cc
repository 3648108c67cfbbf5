#include "tests/simulation/connections/world.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/simulation/connections/planted.h"
#include "tests/simulation/connections/tls_ends.h"

namespace delayq::connections {

namespace {

constexpr Moment kStart = from_unix_ms(1'700'000'000'000);
/// So many events of one session that move nothing, one after another, are a loop that spins.
constexpr uint64_t kMostIdleEvents = 20;
constexpr int kMostRounds = 5'000;
/// Of the fields of a job besides its body, in any protocol.
constexpr size_t kFields = 600;
/// Of the largest request, and of what a session keeps of a request that has begun.
constexpr size_t kMostInput = 256 * 1024;
/// Of news that a client does not read: what may be unsent before more are read, and one reading.
constexpr size_t kMostNews = 512 * 1024;

QueueConfig queue_config(const Shape& shape) {
  QueueConfig config;
  config.limits.body_bytes = shape.has_large_jobs ? size_t{1} << 20 : size_t{32} << 10;
  return config;
}

}  // namespace

Shape Shape::random(Random& random) {
  Shape shape;
  shape.has_tokens = random.chance(1, 2);
  shape.has_large_jobs = random.chance(1, 40);
  shape.max_sessions = random.between(2, 10);
  shape.body_bytes = random.between(1, 30'000);
  shape.session.output_bytes = random.between(1, 64) * 1024;
  shape.session.waiting_input_bytes = random.between(64, 8'192);
  shape.session.stall = std::chrono::seconds(random.between(5, 30));
  shape.session.request = std::chrono::seconds(random.between(5, 20));
  shape.session.stranger = std::chrono::seconds(random.between(10, 60));
  shape.answers.connection = random.between(16, 512) * 1024;
  shape.answers.all = shape.answers.connection * random.between(1, 4);
  return shape;
}

/// What the session waits for is noted in its link.
class World::VirtualSocket final : public net::Socket {
 public:
  VirtualSocket(World& world, Link& link) : world_(world), link_(link) {}

  void wait_for_input() override { expect_open(std::exchange(link_.waits.input, true)); }
  void wait_for_room() override { expect_open(std::exchange(link_.waits.room, true)); }
  void set_alarm(net::Steady at) override {
    expect_open(false);
    link_.waits.alarm = at;
  }
  void end_output() override { link_.wire->end_by_server(); }
  void close() override {
    world_.say([&] { return fmt::format("  #{} closed by the server", link_.number); });
    link_.waits = {false, false, true, std::nullopt};
    link_.wire->close_by_server();
  }
  std::string peer() const override { return fmt::format("client:{}", link_.number); }
  net::Steady now() const override { return world_.steady_; }

 private:
  void expect_open(bool waits_already) const {
    if (link_.waits.is_closed) throw Broken("a session that was closed waits for something");
    if (waits_already) throw Broken("a session waits twice for the same");
  }

  World& world_;
  Link& link_;
};

World::World(uint64_t seed, Canary canary, bool tracing)
    : random_(seed),
      canary_(canary),
      tracing_(tracing),
      shape_(Shape::random(random_)),
      clock_(kStart),
      queue_(engine_, queue_config(shape_), 1),
      resp_host_{queue_, [this] { return clock_; }, "0", kStart, [this] { return sessions_.size(); }, 0,
                 front_},
      http_host_{queue_, [this] { return clock_; }, "0", front_} {
  server_tls();  // made with other random numbers than those of the story
  seed_tls(seed);
  const bool is_unbounded = canary == Canary::kUnbounded;
  constexpr size_t kNoBound = size_t{1} << 60;
  sessions_.set_limits(is_unbounded ? net::AnswerLimits{kNoBound, kNoBound} : shape_.answers);
  if (shape_.has_tokens && canary != Canary::kOpenDoor) {
    Token token;
    token.name = "known";
    token.sha256 = api::hash_secret(kSecret);
    token.scopes = kAnyScope;
    token.topics = {"*"};
    front_->access.replace({token});
  }
  fill_queue();
}

World::~World() {
  for (Link& link : links_) link.session.reset();
  sessions_.clear();
}

void World::trace(const std::string& line) { std::puts(line.c_str()); }

void World::fill_queue() {
  std::vector<std::string> ids;
  std::vector<std::string> bodies;
  std::vector<PushRequest> jobs;
  const auto add = [&](std::string_view topic, uint32_t count, size_t size, Millis delay) {
    for (uint32_t i = 0; i < count; ++i) {
      ids.push_back(fmt::format("{}-{}", topic, i));
      bodies.emplace_back(size, 'b');
      PushRequest job;
      job.topic = topic;
      job.delay = delay;
      jobs.push_back(job);
    }
  };
  constexpr Millis kLater = std::chrono::hours{24};
  add("big", kBigJobs, shape_.body_bytes, kLater);
  add("safe", kSafeJobs, 10, kLater);
  if (shape_.has_large_jobs) add("large", 12, 900'000, Millis{});
  for (size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].id = ids[i];
    jobs[i].body = bodies[i];
  }
  queue_.start(clock_, [](const Status&) {});
  queue_.push(clock_, jobs, [](const Result<PushReport>& report) {
    if (!report.ok()) throw Broken("the first jobs were not taken: " + to_string(report.error()));
  });
  work(false);
}

// ---- somebody connects

std::unique_ptr<net::Stream> World::make_stream(Link& link, bool is_tls) {
  std::unique_ptr<net::Stream> inner;
  if (is_tls) {
    inner = server_tls().accept(new_wire_bio(*link.wire));
  } else {
    inner = std::make_unique<WireStream>(*link.wire);
  }
  auto checked = canary_ == Canary::kTlsSpin ? std::make_unique<ForgetfulStream>(std::move(inner))
                                             : std::make_unique<CheckedStream>(std::move(inner));
  link.stream = checked.get();
  return checked;
}

net::MakeProtocol World::make_protocol(bool is_http) {
  return [this, is_http](net::Connection& connection) {
    std::shared_ptr<net::Protocol> protocol;
    if (is_http) {
      protocol = std::make_shared<http::Conversation>(http_host_, connection);
    } else {
      protocol = std::make_shared<resp::Conversation>(resp_host_, connection);
    }
    if (canary_ == Canary::kDisorder) protocol = std::make_shared<DisorderlyProtocol>(protocol, random_);
    return protocol;
  };
}

void World::accept() {
  if (sessions_.size() >= shape_.max_sessions) {
    // Somebody who never said who it is has to go: one of those who did not, and nobody else.
    for (Link& link : links_) {
      if (link.client->answers() == 0 || shape_.has_tokens) link.client->excuse();
    }
    if (!sessions_.drop_stranger()) return;
  }
  Link& link = links_.emplace_back();
  link.number = ++outcome_.clients;
  link.wire = std::make_unique<Wire>(random_, random_.between(200, 64 * 1024));
  const bool is_http = random_.chance(1, 2);
  Client::Manner manner;
  manner.is_tls = random_.chance(1, 3);
  manner.is_tls_1_2 = random_.chance(1, 3);
  manner.is_greedy = random_.chance(1, 4);
  manner.is_confused = random_.chance(1, 8);
  manner.is_silent = random_.chance(1, 8);
  std::string prefix = fmt::format("c{}", link.number);
  auto talker = is_http ? make_http_talker(random_, std::move(prefix), shape_.has_tokens)
                        : make_resp_talker(random_, std::move(prefix), shape_.has_tokens);
  link.client = std::make_unique<Client>(random_, *link.wire, std::move(talker), manner);
  auto socket = std::make_unique<VirtualSocket>(*this, link);
  std::unique_ptr<net::Stream> stream = make_stream(link, manner.is_tls);
  if (canary_ == Canary::kOverflow) {
    link.session =
        std::make_shared<OverflowingSession>(sessions_, std::move(socket), std::move(stream), shape_.session);
  } else {
    link.session =
        std::make_shared<net::Session>(sessions_, std::move(socket), std::move(stream), shape_.session);
  }
  link.session->start(make_protocol(is_http));
  say([&] {
    return fmt::format("#{} connects: {}{}{}", link.number, is_http ? "http" : "resp",
                       manner.is_tls ? ", tls" : "", manner.is_silent ? ", silent" : "");
  });
}

// ---- what happens

void World::act() {
  if (links_.empty()) return;
  auto link = std::next(links_.begin(), static_cast<int64_t>(random_.below(links_.size())));
  link->client->act();
}

void World::turn() {
  for (uint64_t events = random_.between(1, 8); events > 0; --events) {
    if (!deliver_one()) break;
  }
  work(true);
  check_memory();
}

bool World::deliver_one() {
  std::vector<Link*> ready;
  for (Link& link : links_) {
    if ((link.waits.input && link.wire->is_readable()) || (link.waits.room && link.wire->is_writable()))
      ready.push_back(&link);
  }
  if (ready.empty()) return false;
  deliver(*ready[random_.below(ready.size())]);
  return true;
}

void World::deliver(Link& link) {
  ++outcome_.events;
  const uint64_t before = link.wire->progress();
  const bool is_input = link.waits.input && link.wire->is_readable();
  const bool is_room = link.waits.room && link.wire->is_writable();
  const bool tells_input = is_input && (!is_room || random_.chance(1, 2));
  link.stream->begin_event();
  if (tells_input) {
    link.waits.input = false;
    link.session->on_input();
  } else {
    link.waits.room = false;
    link.session->on_room();
  }
  work(true);
  const uint64_t moved = link.wire->progress() - before;
  link.idle_events = moved == 0 && !link.waits.is_closed ? link.idle_events + 1 : 0;
  say([&] {
    return fmt::format("#{} {}: {} bytes, holds {}", link.number, tells_input ? "input" : "room", moved,
                       link.session->footprint());
  });
  if (!link.wire->violation().empty())
    throw Broken(fmt::format("#{}: {}", link.number, link.wire->violation()));
  if (link.idle_events > kMostIdleEvents) {
    throw Broken(
        fmt::format("#{} spins: {} events one after another moved nothing", link.number, link.idle_events));
  }
}

void World::work(bool may_be_late) {
  const bool is_late = may_be_late && random_.chance(1, 4);
  http_host_.events.tick(clock_);
  resp_host_.feeds.tick(clock_);
  for (int round = 0;; ++round) {
    if (round > kMostRounds) throw Broken("the loop has new work without an end");
    for (Link& link : links_) {
      if (!link.waits.is_closed && link.stream != nullptr) link.stream->begin_event();
    }
    do {
      queue_.tick(clock_);
    } while (!is_late && queue_.poll(clock_));
    if (!sessions_.finish_turn()) return;
  }
}

void World::pass(Millis time) {
  // A loop that sleeps has heard of everything.
  if (time >= Millis{100}) {
    while (deliver_one()) {
    }
  }
  clock_ += time;
  steady_ += time;
  for (Link& link : links_) link.client->time_passes(time);
  ring_alarms();
  work(false);
}

void World::ring_alarms() {
  for (Link& link : links_) {
    for (uint64_t rings = 0; link.waits.alarm && *link.waits.alarm <= steady_; ++rings) {
      if (rings > kMostIdleEvents) throw Broken(fmt::format("#{} rings without an end", link.number));
      link.waits.alarm.reset();
      link.stream->begin_event();
      link.session->on_alarm();
      work(false);
    }
  }
}

void World::settle() {
  // Longer than any wait of a pop, and than the patience with those who hold what others need.
  constexpr int kSteps = 100;
  for (int step = 0; step < kSteps; ++step) {
    for (bool moves = true; moves;) {
      moves = false;
      for (Link& link : links_) link.client->settle();
      while (deliver_one()) moves = true;
      work(false);
    }
    check_memory();
    pass(Millis{200});
  }
}

// ---- what must hold

size_t World::stored_bytes() const {
  size_t bytes = kBigJobs * (shape_.body_bytes + kFields);
  for (const Link& link : links_) bytes += link.client->requests() * kFields;
  // What clients push has 20,000 bytes at most, and no answer has more than a hundred jobs of theirs.
  bytes += 100 * 20'000;
  if (shape_.has_large_jobs) bytes += Limits::kPopBytes + 900'000;
  return bytes;
}

void World::check_memory() {
  const size_t answer = stored_bytes();
  const bool has_news = std::any_of(links_.begin(), links_.end(),
                                    [](const Link& link) { return link.client->asked_for_news(); });
  const size_t connection =
      shape_.answers.connection + shape_.session.output_bytes + answer + (has_news ? kMostNews : 0);
  size_t all = 0;
  for (const auto& session : sessions_.open()) {
    const size_t footprint = session->footprint();
    all += footprint;
    // A buffer that grows has up to twice the room that it needs.
    if (footprint > 2 * connection + kMostInput) {
      throw Broken(fmt::format("{} holds {} bytes; the budget is {}", session->peer(), footprint,
                               shape_.answers.connection));
    }
  }
  // Each may have begun one request when there was room, and every waiting pop is answered when it is.
  const size_t each = kMostInput + 100'000 + (has_news ? 2 * kMostNews : 0);
  if (all > 2 * (shape_.answers.all + connection) + sessions_.size() * each) {
    throw Broken(fmt::format("all connections hold {} bytes; the budget is {}", all, shape_.answers.all));
  }
}

JobState World::state_of(std::string_view topic, const std::string& id) {
  std::optional<JobState> state;
  queue_.get(clock_, {topic, id}, [&](const Result<std::optional<FoundJob>>& found) {
    if (found.ok() && *found) state = (*found)->job.state;
  });
  work(false);
  return state.value_or(JobState::kDone);
}

void World::check_end() {
  for (const Link& link : links_) {
    if (const std::string complaint = link.client->complaint(); !complaint.empty())
      throw Broken(fmt::format("#{}: {}", link.number, complaint));
  }
  for (uint32_t i = 0; i < kSafeJobs; ++i) {
    if (state_of("safe", fmt::format("safe-{}", i)) != JobState::kDelayed)
      throw Broken("a job was changed by a client that may not");
  }
  uint64_t evil = 0;
  queue_.stats(clock_, "evil", [&](const Result<TopicStats>& stats) {
    if (stats.ok()) {
      for (const uint64_t count : stats->counts.by_state) evil += count;
    }
  });
  work(false);
  if (evil > 0) throw Broken("a job was pushed by a client that may not");
  for (Link& link : links_) {
    if (link.session != nullptr) link.session->close();
  }
  if (sessions_.budget().held() != 0) {
    throw Broken(fmt::format("all are gone, and {} bytes are still counted", sessions_.budget().held()));
  }
}

Outcome World::outcome() const {
  Outcome outcome = outcome_;
  for (const Link& link : links_) {
    outcome.requests += link.client->requests();
    outcome.answers += link.client->answers();
    outcome.served += link.client->was_served_to_the_end() ? 1 : 0;
  }
  return outcome;
}

}  // namespace delayq::connections
