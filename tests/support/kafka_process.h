#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kafka/admin.h"
#include "tests/support/child_process.h"
#include "tests/support/temporary_directory.h"

namespace delayq::support {

/// A separate Kafka broker on 127.0.0.1 (tests/kafka/broker), in a directory that is removed with it. The
/// destructor kills it, and the kernel kills it if the test dies first. It takes some seconds to start and
/// about 300 MB of memory, so let the tests of a file share one. It is bound to the thread that creates it,
/// which must outlive it.
class KafkaProcess {
 public:
  /// `settings`: of the broker, as "auto.create.topics.enable=true". Throws when it does not start.
  explicit KafkaProcess(std::vector<std::string> settings = {});

  uint16_t port() const { return port_; }
  std::string brokers() const { return "127.0.0.1:" + std::to_string(port_); }
  kafka::ClientOptions client() const {
    kafka::ClientOptions options;
    options.brokers = brokers();
    return options;
  }

  /// kill -9, and waits until it has ended.
  void kill() { process_.kill(); }
  /// Starts it on the same port with the same files. Returns when it serves clients.
  void start();
  /// SIGSTOP: connections stay open, but there are no replies.
  void pause() { process_.pause(); }
  void resume() { process_.resume(); }

  /// Creates a topic and waits until it can be used. Throws when that fails.
  void create(const kafka::NewTopic& topic);

 private:
  void wait_until_ready();

  TemporaryDirectory directory_;
  uint16_t port_ = 0;
  uint16_t controller_port_ = 0;
  std::vector<std::string> settings_;
  ChildProcess process_;
};

}  // namespace delayq::support
