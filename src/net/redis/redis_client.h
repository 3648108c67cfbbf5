#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "core/time.h"
#include "net/redis/client.h"
#include "net/redis/deployment.h"
#include "net/redis/request.h"

namespace delayq::net::redis {

/// Estimates the clock of another machine from requests for its time and the answers. An answer was made at
/// some moment between sending and receiving: the middle of the round trip is the best guess, and the shorter
/// the trip, the better.
///
/// From then on the steady clock measures the time: when our own clock is set, the estimate does not change.
/// If both are the same machine, the estimate follows such a change only with the next answer.
class ClockEstimate {
 public:
  using Micros = std::chrono::microseconds;
  using Steady = std::chrono::steady_clock::time_point;

  /// Our two clocks at the same moment.
  struct Reading {
    Micros wall;
    Steady steady;
  };

  /// The request was sent at `asked`, and the answer arrived `round_trip` later.
  void add(const Reading& asked, Micros round_trip, Micros answer);
  /// The next answer is from another machine. Until it arrives, the clock of the last machine is a better
  /// guess than ours: their clocks probably agree, and a clock that jumps forth and back would hand jobs over
  /// early.
  void expect_another() { is_another_ = true; }
  /// The other machine's clock; our own before the first answer. If the measured difference can be explained
  /// by the round trip and the resolution of a millisecond, it is taken as zero, so that on one machine no
  /// job is early because of an error of measurement.
  Micros time(const Reading& now) const;
  /// The other machine's clock minus ours, rounded to milliseconds.
  Millis offset(const Reading& now) const { return std::chrono::round<Millis>(time(now) - now.wall); }
  /// Whether our clock was set since the last answer, or the machine slept. Then ask again: the other clock
  /// may have been set too.
  bool wants_answer(const Reading& now) const;

  /// Clocks drift apart (100 us a second is much), so a good sample is not kept longer than this. It is also
  /// dropped when drift and round trips do not explain its distance to a new one: then the other clock was
  /// set.
  static constexpr std::chrono::minutes kKept{5};
  /// Our wall clock and steady clock differ by more than this only when the wall clock was set.
  static constexpr Millis kSet{100};

 private:
  struct Sample {
    Reading asked;
    Micros offset;  ///< of the other clock to ours, then
    Micros round_trip;

    /// The other clock, by this sample.
    Micros time(Steady now) const;
  };
  bool is_contradicted(const Sample& sample) const;

  std::optional<Sample> best_;
  std::optional<Reading> answered_;  ///< when the latest question was asked that got an answer
  bool is_another_ = false;
};

/// The client over real connections: finds the link for each request, sends requests again that Redis refused
/// without executing them, keeps requests that must wait, and collects answers for poll().
class RedisClient final : public Client,
                          private LinkEvents,
                          private DeploymentEvents,
                          private SubscriberEvents {
 public:
  RedisClient(Loop& loop, ClientOptions options, std::shared_ptr<TlsClient> tls);
  void start();

  void call(std::string_view key, std::span<const std::string_view> words, Answer answer) override;
  void run(const Script& script, std::span<const std::string_view> keys,
           std::span<const std::string_view> arguments, Answer answer) override;
  void subscribe(std::string channel, std::function<void(std::string_view)> heard,
                 std::function<void()> listening) override;
  size_t poll() override;
  size_t outstanding() const override { return outstanding_commands_; }
  bool is_connected() const override { return deployment_->is_connected(); }
  bool is_cluster() const override { return options_.mode == Mode::kCluster; }
  std::string_view last_error() const override { return last_error_; }
  Moment now() const override;
  Millis clock_offset() const override { return clock_.offset(read_clocks()); }
  const ClientFigures& figures() const override { return figures_; }

 private:
  struct Answered {
    Answer answer;
    Result<resp::Value> result;
  };
  struct Heard {
    SharedChannel channel;
    std::string message;
  };
  struct Listening {
    SharedChannel channel;
  };
  using Event = std::variant<Answered, Heard, Listening>;

  void on_ready(Link& link) override;
  void on_reply(Link& link, Request request, resp::Value reply) override;
  void on_message(std::string_view, std::string_view) override {}
  void on_down(Link& link, const Error& why, std::vector<Request> unanswered) override;
  void on_change() override;
  void on_trouble(const Error& why) override { last_error_ = why.detail; }
  void on_heard(const SharedChannel& channel, std::string_view message) override;
  void on_listening(const SharedChannel& channel) override;
  void on_deaf(const Error& why) override { last_error_ = why.detail; }

  std::unique_ptr<Deployment> make_deployment();
  void accept(Request request);
  Link* link_of(const Request& request);
  /// Sends the request, parks it, or fails it. It counts as in flight already. Requests of one lane that are
  /// sent together are given the same `now`.
  void dispatch(Request request, Loop::Steady now);
  /// The request was refused without being executed: sends it again, in its order.
  void send_again(Request request);
  void resume(uint16_t lane);
  void on_refused(Link& link, Request request, const std::string& text);
  /// Counts one more attempt. Returns false if it was refused too often.
  bool may_retry(Request& request);
  /// Sets a pause before it is sent again; longer each time.
  void pause(Request& request);
  /// Whether it may wait for a connection that must be made first.
  void let_wait(Request& request, Millis how_long) const;
  /// Answers a request that was in flight,
  void finish(Request request, Result<resp::Value> result);
  /// and any request.
  void answer(Request& request, Result<resp::Value> result);
  void park(Request request, Loop::Steady now);
  void revisit_parked();
  Error no_connection() const;
  static ClockEstimate::Reading read_clocks();
  void measure_clock();
  /// Asks for Redis's time before it is due when this machine's clock was set.
  void check_clock();

  Loop& loop_;
  const ClientOptions options_;
  LinkFactory factory_;
  ScriptBook scripts_;
  Random random_;
  ClientFigures figures_;
  std::string last_error_;
  ClockEstimate clock_;
  std::optional<Address> clock_of_;
  std::vector<Event> events_;
  SlotOrder order_;
  size_t outstanding_commands_ = 0;
  size_t outstanding_bytes_ = 0;
  std::vector<Request> parked_;  ///< they wait for a link, or for the end of their pause
  Timer parked_timer_;
  Timer clock_timer_;
  Loop::Steady clock_asked_{};
  std::unique_ptr<Deployment> deployment_;
  Subscriber subscriber_;
  std::shared_ptr<char> alive_ = std::make_shared<char>();
};

}  // namespace delayq::net::redis
