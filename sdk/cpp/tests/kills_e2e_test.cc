// What goes wrong outside of the library: killed programs and servers, connections that are cut.
#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <poll.h>
#include <random>
#include <set>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <delayq/delayq.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "sdk/cpp/tests/support.h"

namespace sdk_test {
namespace {

using namespace std::chrono_literals;
using delayq::Client;
using delayq::Job;
using delayq::Worker;

bool is_deep() { return std::getenv("DELAYQ_SDK_DEEP") != nullptr; }

delayq::ClientOptions patient() {
  delayq::ClientOptions options;
  options.retry_for = kDeadline;
  options.log = [](delayq::LogLevel, std::string_view) {};
  return options;
}

/// This program again, with one of the tests named Child; ended with SIGKILL.
class Child {
 public:
  Child(const std::string& test, const std::string& place) {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], 3);
      ::setenv("DELAYQ_TEST_PLACE", place.c_str(), 1);
      const std::string filter = "--gtest_filter=Child.DISABLED_" + test;
      ::execl("/proc/self/exe", "child", "--gtest_also_run_disabled_tests", filter.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    said_ = ends[0];
  }
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// A line that the child has told.
  std::string line() {
    std::string text;
    for (char c = 0; ::read(said_, &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  int said() const { return said_; }

 private:
  pid_t pid_ = -1;
  int said_ = -1;
};

/// To the parent, before anything else happens.
void tell(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(3, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
}

std::string place() {
  const char* const said = std::getenv("DELAYQ_TEST_PLACE");
  return said == nullptr ? "" : said;
}

TEST(Child, DISABLED_HoldsAJob) {
  Worker worker(Client(place()), {.lease = 500ms});
  worker.handle("t", [](const Job& job) {
    tell(job.id());
    std::promise<void>().get_future().wait();
  });
  worker.run();
}

TEST(Child, DISABLED_Enqueues) {
  Client client = Client::open(place());
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&client, thread] {
      for (int i = 0;; ++i) {
        const std::string id = std::to_string(thread) + "-" + std::to_string(i);
        client.enqueue("t", id, id, delayq::process_in(1h));
        tell(id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Killed, AWorkersJobGoesToAnother) {
  const Server server;
  Client client(server.address());
  Child child("HoldsAJob", server.address());
  client.enqueue("t", "1", "x");
  ASSERT_EQ(child.line(), "1");
  child.kill();
  std::uint32_t attempt = 0;
  Worker worker(client);
  worker.handle("t", [&](const Job& job) {
    attempt = job.attempt();
    worker.stop();
  });
  // The lease ends, and the job waits as its topic says: it is moved up.
  ASSERT_TRUE(eventually([&] { return client.get("t", "1")->state == "delayed"; }));
  client.reschedule("t", "1", delayq::process_in(0ms));
  worker.run();
  EXPECT_EQ(attempt, 2U);
  EXPECT_EQ(client.get("t", "1")->state, "done");
}

TEST(Killed, AnEmbeddedQueueHasAllThatItAnswered) {
  const TempDirectory directory;
  const std::string path = directory.path() + "/data";
  std::set<std::string> told;
  {
    Child child("Enqueues", path);
    while (told.size() < 200) told.insert(child.line());
    child.kill();
    for (std::string line = child.line(); !line.empty(); line = child.line()) told.insert(line);
  }
  Client client = Client::open(path);
  for (const std::string& id : told) {
    const auto job = client.get("t", id);
    ASSERT_TRUE(job) << id;
    EXPECT_EQ(job->payload, id);
  }
}

/// Enqueues and handles jobs until `deadline`, and then until none is left. Each must be handled, and by one
/// handler at a time.
class Traffic {
 public:
  explicit Traffic(const std::string& address)
      : producer_(address, patient()), consumer_(address, patient()) {
    worker_.handle("t", [this](const Job& job) { handle(job); });
    run_ = std::thread([this] { worker_.run(); });
    produce_ = std::thread([this] { produce(); });
  }

  std::size_t handled() {
    const std::lock_guard lock(mutex_);
    return handled_.size();
  }
  /// Waits until all that was enqueued is handled.
  void end() {
    stops_ = true;
    produce_.join();
    const bool is_all = eventually([this] { return handled() == enqueued_.size(); });
    worker_.stop();
    run_.join();
    EXPECT_TRUE(is_all) << handled() << " of " << enqueued_.size();
    std::size_t twice = 0;
    for (const auto& [id, times] : handled_) twice += times > 1;
    std::cout << "  " << enqueued_.size() << " jobs, " << twice << " handled more than once\n";
  }

 private:
  void handle(const Job& job) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(running_.insert(job.id()).second) << job.id() << " is handled by two at once";
    changed_.wait_for(lock, 2ms, [] { return false; });
    running_.erase(job.id());
    ++handled_[job.id()];
  }

  void produce() {
    for (int i = 0; !stops_; ++i) {
      std::vector<delayq::NewJob> jobs;
      for (int n = 0; n < 5; ++n)
        jobs.push_back({.topic = "t",
                        .id = std::to_string(i) + "." + std::to_string(n),
                        .options = {.process_in = 50ms, .backoff = "100ms"}});
      for (const auto& result : producer_.enqueue_many(jobs)) {
        EXPECT_TRUE(result.ok()) << result.error->what();
        enqueued_.insert(result.id);
      }
      const std::string id = std::to_string(i);
      enqueued_.insert(producer_.enqueue("t", id, "x", delayq::process_in(20ms), delayq::backoff("100ms")));
    }
  }

  Client producer_;
  Client consumer_;
  Worker worker_{consumer_, {.concurrency = 8, .lease = 2s, .wait = 5s}};
  std::atomic<bool> stops_ = false;
  std::set<std::string> enqueued_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> running_;
  std::map<std::string, int> handled_;
  std::thread run_, produce_;
};

TEST(Killed, AServerComesBackUnderARunningWorker) {
  Server server;
  Traffic traffic(server.address());
  for (int round = 0; round < (is_deep() ? 10 : 2); ++round) {
    const std::size_t before = traffic.handled();
    EXPECT_TRUE(eventually([&] { return traffic.handled() > before + 50; })) << "round " << round;
    if (round % 2 == 0) {
      server.kill();
    } else {
      server.stop();
    }
    server.start();
  }
  traffic.end();
}

/// Forwards connections, and cuts one of a hundred parts that pass, with its connection.
class CuttingProxy {
 public:
  CuttingProxy(std::uint16_t target, unsigned seed) : target_(target), random_(seed) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof(address);
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
        ::listen(listener_, 64) != 0 ||
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      std::abort();
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { run(); });
  }
  ~CuttingProxy() {
    stops_ = true;
    thread_.join();
    for (const Pair& pair : pairs_) close(pair);
    ::close(listener_);
  }
  CuttingProxy(const CuttingProxy&) = delete;
  CuttingProxy& operator=(const CuttingProxy&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int cuts() const { return cuts_; }
  /// Cuts no more.
  void heal() { is_healed_ = true; }

 private:
  struct Pair {
    int client, server;
  };

  static sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static void close(const Pair& pair) {
    ::close(pair.client);
    ::close(pair.server);
  }

  void run() {
    while (!stops_) {
      std::vector<pollfd> files{{listener_, POLLIN, 0}};
      for (const Pair& pair : pairs_) {
        files.push_back({pair.client, POLLIN, 0});
        files.push_back({pair.server, POLLIN, 0});
      }
      ::poll(files.data(), files.size(), 50);
      std::vector<Pair> left;
      for (std::size_t i = 0; i < pairs_.size(); ++i) {
        const Pair pair = pairs_[i];
        const bool is_open = (files[2 * i + 1].revents == 0 || pass(pair.client, pair.server)) &&
                             (files[2 * i + 2].revents == 0 || pass(pair.server, pair.client));
        if (is_open) {
          left.push_back(pair);
        } else {
          close(pair);
        }
      }
      pairs_ = std::move(left);
      if (files[0].revents != 0) accept();
    }
  }

  void accept() {
    const int client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(target_);
    if (client < 0 || ::connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
      std::abort();
    pairs_.push_back({client, server});
  }

  bool pass(int from, int to) {
    std::array<char, 65'536> part;
    const ssize_t got = ::recv(from, part.data(), part.size(), 0);
    if (got <= 0) return false;
    const bool is_cut = !is_healed_ && random_() % 100 == 0;
    if (is_cut) ++cuts_;
    // A part of what comes may still arrive.
    const std::size_t size = is_cut ? random_() % static_cast<unsigned>(got) : static_cast<std::size_t>(got);
    for (std::size_t sent = 0; sent < size;) {
      const ssize_t once = ::send(to, part.data() + sent, size - sent, MSG_NOSIGNAL);
      if (once <= 0) return false;
      sent += static_cast<std::size_t>(once);
    }
    return !is_cut;
  }

  const std::uint16_t target_;
  std::mt19937 random_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::vector<Pair> pairs_;
  std::atomic<bool> stops_ = false;
  std::atomic<bool> is_healed_ = false;
  std::atomic<int> cuts_ = 0;
  std::thread thread_;
};

TEST(Cut, ConnectionsAreCutAtRandom) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  const Server server;
  CuttingProxy proxy(server.port(), seed);
  Traffic traffic(proxy.address());
  const auto begin = std::chrono::steady_clock::now();
  const auto length = is_deep() ? 60s : 10s;
  eventually([&] { return std::chrono::steady_clock::now() > begin + length; });
  proxy.heal();
  traffic.end();
  EXPECT_GT(proxy.cuts(), is_deep() ? 60 : 10);
  std::cout << "  " << proxy.cuts() << " cuts, seed " << seed << "\n";
}

}  // namespace
}  // namespace sdk_test
