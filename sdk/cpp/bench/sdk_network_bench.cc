// Over the network: enqueues that are joined into batches against pipelined RPUSH of the same size to a real
// redis-server, and a worker against the ideal rate.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <delayq/delayq.h>
#include <netinet/in.h>

#include "sdk/cpp/tests/support.h"

namespace sdk_bench {
namespace {

using namespace std::chrono_literals;

constexpr int kThreads = 4;
constexpr int kWindow = 512;
constexpr std::size_t kPayload = 128;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// A redis-server without persistence, which is its fastest.
class Redis {
 public:
  Redis() {
    const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof(address);
    if (::bind(probe, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
        ::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      throw std::runtime_error("no free port");
    port_ = ntohs(address.sin_port);
    ::close(probe);
    pid_ = ::fork();
    if (pid_ == 0) {
      const std::string port = std::to_string(port_);
      ::execlp("redis-server", "redis-server", "--port", port.c_str(), "--save", "", "--appendonly", "no",
               "--loglevel", "warning", nullptr);
      ::_exit(127);
    }
    if (!sdk_test::eventually([this] { return try_connect() >= 0; }))
      throw std::runtime_error("no redis-server");
  }
  ~Redis() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Redis(const Redis&) = delete;
  Redis& operator=(const Redis&) = delete;

  int connect() const {
    const int file = try_connect();
    if (file < 0) throw std::runtime_error("cannot connect to redis-server");
    return file;
  }

 private:
  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  int try_connect() const {
    const int file = ::socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = loopback(port_);
    if (::connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return file;
    ::close(file);
    return -1;
  }

  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
};

/// RPUSHes per second: pipelines of 512 on one connection, without any client library in between.
double rpush(const Redis& redis, int count) {
  const std::string command =
      "*3\r\n$5\r\nRPUSH\r\n$5\r\norder\r\n$128\r\n" + std::string(kPayload, 'b') + "\r\n";
  std::string pipeline;
  for (int i = 0; i < kWindow; ++i) pipeline += command;
  const int file = redis.connect();
  std::array<char, 65'536> part;
  const auto begin = std::chrono::steady_clock::now();
  for (int done = 0; done < count; done += kWindow) {
    for (std::size_t sent = 0; sent < pipeline.size();) {
      const ssize_t once = ::send(file, pipeline.data() + sent, pipeline.size() - sent, MSG_NOSIGNAL);
      if (once <= 0) throw std::runtime_error("redis-server is gone");
      sent += static_cast<std::size_t>(once);
    }
    for (int replies = 0; replies < kWindow;) {
      const ssize_t got = ::recv(file, part.data(), part.size(), 0);
      if (got <= 0) throw std::runtime_error("redis-server is gone");
      replies += static_cast<int>(std::count(part.data(), part.data() + got, '\n'));
    }
  }
  const double rate = count / seconds_since(begin);
  ::close(file);
  return rate;
}

/// Durable enqueues per second: single jobs with callbacks, from several threads; the library joins them.
double enqueue(delayq::Client& client, int count, int round) {
  std::vector<std::thread> threads;
  const auto begin = std::chrono::steady_clock::now();
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      std::counting_semaphore<> window(kWindow);
      delayq::NewJob job{
          .topic = "order", .payload = std::string(kPayload, 'b'), .options = {.process_in = 1h}};
      for (int i = 0; i < count / kThreads; ++i) {
        window.acquire();
        job.id = std::to_string(round) + "-" + std::to_string(thread) + "-" + std::to_string(i);
        client.enqueue_async(job, [&window](const delayq::EnqueueResult& result) {
          if (!result.ok()) std::abort();
          window.release();
        });
      }
      for (int i = 0; i < kWindow; ++i) window.acquire();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return count / seconds_since(begin);
}

/// The share of the ideal rate that a worker reaches with 50 handlers of 5 ms.
double work(delayq::Client& client, int count) {
  constexpr unsigned kConcurrency = 50;
  std::vector<delayq::NewJob> jobs;
  for (int i = 0; i < count; ++i) jobs.push_back({.topic = "work", .id = std::to_string(i), .payload = "x"});
  client.enqueue_many(jobs);
  delayq::Worker worker(client, {.concurrency = kConcurrency});
  std::atomic<int> left = count;
  worker.handle("work", [&](const delayq::Job&) {
    std::this_thread::sleep_for(5ms);
    if (--left == 0) worker.stop();
  });
  const auto begin = std::chrono::steady_clock::now();
  worker.run();
  return count * 0.005 / kConcurrency / seconds_since(begin);
}

/// The same without a queue: what this machine makes of the ideal rate just now.
double sleep_only(int count) {
  constexpr int kHandlers = 50;
  std::vector<std::thread> threads;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kHandlers; ++i) {
    threads.emplace_back([count] {
      for (int n = 0; n < count / kHandlers; ++n) std::this_thread::sleep_for(5ms);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return count * 0.005 / kHandlers / seconds_since(begin);
}

int run(bool smoke) {
  const int jobs = smoke ? 8'192 : 262'144;
  const int rounds = smoke ? 1 : 5;
  const Redis redis;
  sdk_test::Server server;
  delayq::Client client(server.address());
  std::vector<double> theirs, ours, ratios, shares, in_process, slept;
  const sdk_test::TempDirectory directory;
  delayq::Client embedded = delayq::Client::open(directory.path() + "/data");
  for (int round = 0; round < rounds; ++round) {
    theirs.push_back(rpush(redis, jobs));
    ours.push_back(enqueue(client, jobs, round));
    ratios.push_back(ours.back() / theirs.back());
    shares.push_back(work(client, smoke ? 500 : 10'000));
    in_process.push_back(work(embedded, smoke ? 500 : 10'000));
    slept.push_back(sleep_only(smoke ? 500 : 10'000));
  }
  std::printf("commit %s, 128 B payloads, medians of %d rounds by turns\n", DELAYQ_COMMIT, rounds);
  std::printf("RPUSH, 512 in a pipeline, no library  %8.0f k/s\n", median(theirs) / 1000);
  std::printf("enqueue_async, 4 threads, durable     %8.0f k/s   %.2fx   bar 0.50x\n", median(ours) / 1000,
              median(ratios));
  std::printf("worker, 50 handlers of 5 ms                         %.2fx of the ideal rate   bar 0.90x\n",
              median(shares));
  std::printf("the same in process                                 %.2fx\n", median(in_process));
  std::printf("threads that only sleep                             %.2fx\n", median(slept));
  const bool is_met = median(ratios) >= 0.5 && median(shares) >= 0.9;
  std::printf("bars: %s\n", is_met ? "met" : "NOT MET");
  return smoke || is_met ? 0 : 1;
}

}  // namespace
}  // namespace sdk_bench

int main(int argc, char** argv) { return sdk_bench::run(argc > 1 && std::strcmp(argv[1], "--smoke") == 0); }
