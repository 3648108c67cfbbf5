#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <poll.h>
#include <string>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <thread>
#include <vector>

#include "bench/load/loopback.h"
#include "resp/command_parser.h"
#include "resp/writer.h"

namespace delayq::bench {

/// For tests: speaks the commands that the load uses, keeps jobs in memory, and hands every job over at once,
/// whatever its time. Runs on a thread of its own.
class ToyServer {
 public:
  /// Every `refuse_every`th push is refused; 0: none.
  explicit ToyServer(uint64_t refuse_every = 0)
      : refuse_every_(refuse_every),
        stop_(::eventfd(0, EFD_CLOEXEC)),
        listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    port_ = free_loopback_port().value();
    const Address address = loopback(port_);
    is_listening_ =
        ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address.socket), address.size) == 0 &&
        ::listen(listener_.get(), 64) == 0;
    thread_ = std::thread([this] { run(); });
  }
  ~ToyServer() {
    const uint64_t one = 1;
    if (::write(stop_.get(), &one, sizeof one) == sizeof one) thread_.join();
  }
  ToyServer(const ToyServer&) = delete;
  ToyServer& operator=(const ToyServer&) = delete;

  bool is_listening() const { return is_listening_; }
  Address address() const { return loopback(port_); }
  uint64_t pushes() const { return pushes_; }
  uint64_t acks() const { return acks_; }

 private:
  struct Job {
    std::string id, body;
    int64_t due_ms = 0;
  };
  struct Client {
    Descriptor socket;
    std::string input{};
  };

  void run() {
    std::vector<pollfd> polled;
    for (;;) {
      polled = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
      for (const Client& client : clients_) polled.push_back({client.socket.get(), POLLIN, 0});
      if (::poll(polled.data(), polled.size(), -1) < 0 || polled[0].revents != 0) return;
      for (size_t i = polled.size(); i-- > 2;) {
        if (polled[i].revents != 0 && !serve(clients_[i - 2]))
          clients_.erase(clients_.begin() + static_cast<int64_t>(i) - 2);
      }
      if (polled[1].revents != 0)
        clients_.push_back({Descriptor(::accept(listener_.get(), nullptr, nullptr))});
    }
  }

  bool serve(Client& client) {
    char buffer[4096];
    const ssize_t count = ::recv(client.socket.get(), buffer, sizeof buffer, 0);
    if (count <= 0) return false;
    client.input.append(buffer, static_cast<size_t>(count));
    std::string out;
    size_t place = 0;
    while (parser_.next(std::string_view(client.input).substr(place)) ==
           resp::CommandParser::Outcome::kCommand) {
      answer(parser_.arguments(), out);
      place += parser_.consumed();
    }
    client.input.erase(0, place);
    return ::send(client.socket.get(), out.data(), out.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(out.size());
  }

  void answer(const std::vector<std::string_view>& words, std::string& out) {
    resp::Writer writer(out, resp::Version::k2);
    if (words[0] == "PUSH") return push(words, writer);
    if (words[0] == "POP") return pop(words, writer);
    if (words[0] == "CANCEL") return writer.simple("cancelled");
    acks_ += words.size() - 1;
    writer.integer(static_cast<int64_t>(words.size() - 1));
  }

  void push(const std::vector<std::string_view>& words, resp::Writer& writer) {
    if (refuse_every_ > 0 && ++pushes_ % refuse_every_ == 0) return writer.error("X", "no");
    if (refuse_every_ == 0) ++pushes_;
    Job job{std::to_string(pushes_), std::string(words[3]), 0};
    if (words.size() > 5 && words[4] == "AT") job.due_ms = std::stoll(std::string(words[5]).erase(10, 1));
    writer.bulk(job.id);
    jobs_[std::string(words[1])].push_back(std::move(job));
  }

  void pop(const std::vector<std::string_view>& words, resp::Writer& writer) {
    const size_t most = words.size() > 3 ? std::stoul(std::string(words[words.size() - 3])) : 1;
    std::deque<Job>& jobs = jobs_[std::string(words[1])];
    const size_t count = std::min(most, jobs.size());
    writer.array(count);
    for (size_t i = 0; i < count; ++i) {
      writer.array(6);
      for (const std::string_view text : {std::string_view("lease"), words[1], std::string_view(jobs[0].id),
                                          std::string_view(jobs[0].body)})
        writer.bulk(text);
      writer.integer(1);
      writer.integer(jobs[0].due_ms);
      jobs.pop_front();
    }
  }

  uint64_t refuse_every_;
  Descriptor stop_;
  Descriptor listener_;
  uint16_t port_ = 0;
  bool is_listening_ = false;
  std::atomic<uint64_t> pushes_ = 0;
  std::atomic<uint64_t> acks_ = 0;
  std::vector<Client> clients_;
  std::map<std::string, std::deque<Job>> jobs_;
  resp::CommandParser parser_;
  std::thread thread_;
};

}  // namespace delayq::bench
