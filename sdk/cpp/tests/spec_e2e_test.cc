// The scenarios of sdk/spec against real servers.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "sdk/cpp/tests/scenarios.h"
#include "sdk/cpp/tests/support.h"

namespace sdk_test {
namespace {

class OverTheNetwork : public testing::TestWithParam<std::string> {};

TEST_P(OverTheNetwork, Passes) {
  const Json spec = read_spec(GetParam());
  const Json* const configuration = spec.find("server");
  const Server server(configuration == nullptr ? "" : configuration->text);
  const MakeClient make = [&](const Json& said) {
    return delayq::Client(server.address(), client_options(said));
  };
  for (const Json& each : spec.find("scenarios")->items) {
    SCOPED_TRACE(each.find("name")->text);
    run_scenario(each, make);
  }
}

INSTANTIATE_TEST_SUITE_P(Spec, OverTheNetwork, testing::ValuesIn(spec_files()));

/// The server of a call of wire.json, which is a program.
class Peer {
 public:
  explicit Peer(const std::string& name) {
    int to[2];
    int from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(to[0], 0);
      ::dup2(from[1], 1);
      ::execlp("python3", "python3", "-B", DELAYQ_SOURCE_FOLDER "/sdk/spec/wire.py", name.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    in_ = to[1];
    said_ = from[0];
  }
  ~Peer() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(said_);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  std::string address() { return "127.0.0.1:" + line(); }

  /// What differs from the call's `sent`; "" if nothing does.
  std::string end() {
    ::close(in_);
    std::string difference = line();
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status == 0 || !difference.empty() ? difference : "it failed";
  }

 private:
  std::string line() {
    std::string text;
    for (char c = 0; ::read(said_, &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }

  pid_t pid_ = -1;
  int in_ = -1;
  int said_ = -1;
};

TEST(Wire, CallsEndAsTheTableSays) {
  const Json table = read_spec("wire.json");
  for (const Json& call : table.find("calls")->items) {
    const std::string name = call.find("name")->text;
    SCOPED_TRACE(name);
    for (const auto& [key, value] : call.members)
      EXPECT_TRUE(key == "name" || key == "client" || key == "server" || key == "step" || key == "sent")
          << key;
    const auto begin = std::chrono::steady_clock::now();
    Peer peer(name);
    const Json* const said = call.find("client");
    delayq::ClientOptions options = client_options(said == nullptr ? Json{} : *said);
    options.log = [](delayq::LogLevel, std::string_view) {};
    const std::string address = peer.address();
    Json scenario;
    scenario.type = Json::Type::kObject;
    scenario.set("name", Json::of(std::string_view(name)));
    scenario.set("steps", Json{.type = Json::Type::kArray, .items = {*call.find("step")}});
    run_scenario(scenario, [&](const Json&) { return delayq::Client(address, options); });
    EXPECT_EQ(peer.end(), "");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  }
}

}  // namespace
}  // namespace sdk_test
