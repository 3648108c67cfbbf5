#include "sdk/cpp/tests/support.h"

#include <array>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <poll.h>
#include <regex>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace sdk_test {

namespace {

/// Reads what the server says until it says where it is. Returns the port of RESP.
std::uint16_t read_port(int said) {
  static const std::regex kAddress(R"(redis-cli (?:--tls )?-p (\d+) )");
  std::string text;
  const auto deadline = std::chrono::steady_clock::now() + kDeadline;
  std::array<char, 4096> part;
  while (std::chrono::steady_clock::now() < deadline) {
    pollfd file{said, POLLIN, 0};
    if (::poll(&file, 1, 1000) <= 0) continue;
    const ssize_t got = ::read(said, part.data(), part.size());
    if (got <= 0) break;
    text.append(part.data(), static_cast<std::size_t>(got));
    std::smatch found;
    if (text.find("http", text.find("redis-cli")) != std::string::npos &&
        std::regex_search(text, found, kAddress))
      return static_cast<std::uint16_t>(std::stoi(found[1]));
  }
  throw std::runtime_error("the server did not start: " + text);
}

}  // namespace

TempDirectory::TempDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "delayq-sdk-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error(std::strerror(errno));
  path_ = pattern;
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string server_program() {
  const char* const said = std::getenv("DELAYQ");
  return said != nullptr ? said : DELAYQ_PROGRAM;
}

Server::Server(std::string configuration, std::vector<std::string> options) : options_(std::move(options)) {
  if (!configuration.empty()) {
    const std::string file = directory_.path() + "/delayq.toml";
    std::ofstream(file) << configuration;
    options_.insert(options_.end(), {"-c", file});
  }
  start();
}

Server::~Server() { kill(); }

void Server::start() {
  std::vector<std::string> words{server_program(), "serve",
                                 "--http",         "127.0.0.1:0",
                                 "--resp",         "127.0.0.1:" + std::to_string(port_),
                                 "--data",         directory_.path() + "/data",
                                 "--log-level",    "error"};
  words.insert(words.end(), options_.begin(), options_.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int said[2];
  if (::pipe2(said, O_CLOEXEC) != 0) throw std::runtime_error(std::strerror(errno));
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(said[1], 1);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(said[1]);
  try {
    port_ = read_port(said[0]);
  } catch (...) {
    ::close(said[0]);
    kill();
    throw;
  }
  // It says nothing more there; a pipe that nobody reads would end it with SIGPIPE if it did.
  std::thread([file = said[0]] {
    std::array<char, 4096> part;
    while (::read(file, part.data(), part.size()) > 0) {
    }
    ::close(file);
  }).detach();
}

void Server::end(int signal) {
  if (pid_ <= 0) return;
  ::kill(pid_, signal);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void Server::kill() { end(SIGKILL); }
void Server::stop() { end(SIGTERM); }

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds within) {
  const auto deadline = std::chrono::steady_clock::now() + within;
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    never.wait_for(lock, std::chrono::milliseconds(5));
  }
  return true;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace sdk_test
