#include "tests/support/kafka_process.h"

#include <array>
#include <memory>
#include <stdexcept>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "tests/support/redis_process.h"

namespace delayq::support {

namespace {

/// A Java that starts beside other tests and builds.
constexpr int kStartSeconds = 120;
constexpr Millis kPatience = std::chrono::seconds{10};

bool accepts(uint16_t port) {
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const bool is_open = ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(probe);
  return is_open;
}

std::unique_ptr<kafka::Admin> admin_of(const kafka::ClientOptions& client) {
  auto opened = kafka::open_admin(client);
  if (!opened.ok()) throw std::runtime_error(opened.error().detail);
  return std::move(*opened);
}

}  // namespace

KafkaProcess::KafkaProcess(std::vector<std::string> settings)
    : port_(free_port()), controller_port_(free_port()), settings_(std::move(settings)) {
  start();
}

void KafkaProcess::start() {
  if (process_.is_running()) return;
  std::vector<std::string> words{DELAYQ_SOURCE_FOLDER "/tests/kafka/broker", directory_.path().string(),
                                 std::to_string(port_), std::to_string(controller_port_)};
  words.insert(words.end(), settings_.begin(), settings_.end());
  process_.start(std::move(words), directory_ / "log");
  wait_until_ready();
}

void KafkaProcess::wait_until_ready() {
  std::unique_ptr<kafka::Admin> admin;
  wait_until(
      "the Kafka broker is ready",
      [&] {
        if (process_.has_ended())
          throw std::runtime_error("the broker ended as it started:\n" + whole_file(directory_ / "log"));
        if (!accepts(port_)) return false;
        if (admin == nullptr) admin = admin_of(client());
        return admin->describe({}, kPatience).ok();
      },
      kStartSeconds);
}

void KafkaProcess::create(const kafka::NewTopic& topic) {
  const auto admin = admin_of(client());
  if (const Status status = admin->create(std::array{topic}, kPatience); !status.ok())
    throw std::runtime_error(status.error().detail);
  wait_until("the topic can be used", [&] {
    const auto found = admin->describe(std::array{topic.name}, kPatience);
    return found.ok() && found->size() == 1;
  });
}

}  // namespace delayq::support
