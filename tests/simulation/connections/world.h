#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "api/http/conversation.h"
#include "api/resp/conversation.h"
#include "core/random.h"
#include "engine/memory/memory_engine.h"
#include "net/session.h"
#include "queue/queue.h"
#include "tests/simulation/connections/client.h"
#include "tests/simulation/connections/story.h"
#include "tests/simulation/connections/wire.h"

namespace delayq::connections {

/// What a seed's server is like: small bounds, so that they are met.
struct Shape {
  bool has_tokens = false;
  bool has_large_jobs = false;  ///< more in one topic than an answer to a pop may have
  size_t max_sessions = 0;
  size_t body_bytes = 0;  ///< of the jobs of topic "big"
  net::SessionLimits session;
  net::AnswerLimits answers;

  static Shape random(Random& random);
};

/// The server, its clients and the network between them, on a virtual clock. Throws Broken.
class World {
 public:
  World(uint64_t seed, Canary canary, bool tracing);
  ~World();

  /// Somebody connects.
  void accept();
  /// A client does something.
  void act();
  /// The loop hears of some of what has happened, and finishes its turn.
  void turn();
  void pass(Millis time);
  /// All clients behave well from now on, until nothing moves any more.
  void settle();
  /// What must be true at the end.
  void check_end();

  Random& random() { return random_; }
  Outcome outcome() const;

 private:
  /// What a session waits for.
  struct Waits {
    bool input = false;
    bool room = false;
    bool is_closed = false;
    std::optional<net::Steady> alarm;
  };
  class VirtualSocket;
  struct Link {
    std::unique_ptr<Wire> wire;
    Waits waits;
    std::shared_ptr<net::Session> session;
    CheckedStream* stream = nullptr;  ///< of the session
    std::unique_ptr<Client> client;
    uint64_t number = 0;
    uint64_t idle_events = 0;  ///< one after another that moved nothing
  };

  void fill_queue();
  std::unique_ptr<net::Stream> make_stream(Link& link, bool is_tls);
  net::MakeProtocol make_protocol(bool is_http);
  bool deliver_one();
  void deliver(Link& link);
  void ring_alarms();
  /// As the server does: works, sends and reads on until there is nothing to do.
  void work(bool may_be_late);
  void check_memory();
  size_t stored_bytes() const;
  JobState state_of(std::string_view topic, const std::string& id);

  template <class Line>
  void say(Line line) {
    if (tracing_) trace(line());
  }
  static void trace(const std::string& line);

  Random random_;
  Canary canary_;
  bool tracing_;
  Shape shape_;
  Moment clock_;
  net::Steady steady_{};
  MemoryEngine engine_;
  Queue queue_;
  std::shared_ptr<api::Front> front_ = std::make_shared<api::Front>();
  resp::Endpoint resp_host_;
  http::Endpoint http_host_;
  std::list<Link> links_;
  net::SessionSet sessions_;
  Outcome outcome_;
};

}  // namespace delayq::connections
