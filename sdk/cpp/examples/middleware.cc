// What surrounds every handler; retries, dead jobs, and a handler that looks whether it should stop.
//   ./middleware DIRECTORY
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>

#include <delayq/delayq.h>

using namespace std::chrono_literals;

int main(int /*argc*/, char** argv) {
  delayq::Client client = delayq::Client::open(argv[1]);
  client.enqueue("mail", "1", "hello", delayq::retry(3), delayq::backoff("200ms"));

  delayq::Worker worker(client, {.concurrency = 4, .grace = 5s});
  worker.use([](const delayq::Job& job, const auto& next) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      next();
    } catch (const std::exception& error) {
      std::printf("%s/%s attempt %u: %s\n", job.topic().c_str(), job.id().c_str(), job.attempt(),
                  error.what());
      throw;
    }
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    std::printf("%s/%s done in %.0f ms\n", job.topic().c_str(), job.id().c_str(), took.count());
  });
  worker.handle("mail", [&](const delayq::Job& job) {
    if (job.payload().empty()) throw delayq::Dead("nothing to send");
    if (job.attempt() == 1) throw std::runtime_error("no route");        // the backoff decides
    if (job.attempt() == 2) throw delayq::RetryIn(100ms, "greylisted");  // the handler decides
    std::mutex mutex;
    std::condition_variable_any waiting;
    std::unique_lock lock(mutex);
    waiting.wait_for(lock, job.stop_token(), 50ms,
                     [] { return false; });  // work that ends early when it should
    worker.stop();
  });
  worker.run();
}
