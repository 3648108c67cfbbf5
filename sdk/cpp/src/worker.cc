#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <deque>
#include <pthread.h>
#include <thread>
#include <utility>

#include <delayq/worker.h>

#include "sdk/cpp/src/worker_core.h"

namespace delayq {
inline namespace v1 {

namespace {

constexpr std::array<std::string_view, 3> kReasons{"cancelled", "lease_lost", "stopping"};

}  // namespace

std::string_view name_of(StopReason reason) noexcept {
  const auto index = static_cast<std::size_t>(reason);
  return index < kReasons.size() ? kReasons[index] : "";
}

// ---- Job

const std::string& Job::topic() const { return running_.topic; }
const std::string& Job::id() const { return running_.id; }
const std::string& Job::payload() const { return running_.payload; }
std::uint32_t Job::attempt() const { return running_.attempt; }
Time Job::due_at() const { return running_.due_at; }
const Headers& Job::headers() const { return running_.headers; }
Time Job::lease_until() const { return running_.lease_until(); }
std::stop_token Job::stop_token() const { return running_.stop.get_token(); }
std::optional<StopReason> Job::stop_reason() const { return running_.reason(); }

// ---- Worker

Worker::Worker(Client client, WorkerOptions options)
    : core_(std::make_shared<WorkerCore>(std::move(client.core_), options)) {
  if (options.concurrency == 0) throw Error(ErrorCode::invalid, "concurrency: must be at least 1");
}

Worker::~Worker() { stop(); }

Worker& Worker::handle(std::string topic, Handler handler) {
  if (core_->has_begun()) throw Error(ErrorCode::invalid, "handle: the worker runs already");
  core_->handlers[std::move(topic)] = std::move(handler);
  return *this;
}

Worker& Worker::use(Middleware middleware) {
  if (core_->has_begun()) throw Error(ErrorCode::invalid, "use: the worker runs already");
  core_->middleware.push_back(std::move(middleware));
  return *this;
}

void Worker::run() { core_->run(); }

void Worker::stop() { core_->stop(); }

void Worker::run_until_signal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  std::atomic<bool> is_over = false;
  std::thread listener([&] {
    const timespec look_again{0, 200'000'000};
    while (!is_over) {
      const int number = ::sigtimedwait(&signals, nullptr, &look_again);
      if (number > 0) core_->stop();
    }
  });
  const auto end = [&] {
    is_over = true;
    listener.join();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  };
  try {
    core_->run();
  } catch (...) {
    end();
    throw;
  }
  end();
}

}  // namespace v1
}  // namespace delayq
