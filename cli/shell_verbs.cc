// What shells and manual readers want: completion, complete, manual.
#include <ostream>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/completion.h"
#include "cli/connection.h"
#include "cli/manual.h"
#include "cli/verb.h"

namespace delayq::cli {

namespace {

/// Somebody has pressed a key and waits.
constexpr Millis kPatience{300};
constexpr int kMostPages = 10;

class OfTheTree : public Verb {
 public:
  bool is_client() const override { return false; }
  void add_options(CLI::App& app) override { root_ = app.get_parent(); }

 protected:
  const CLI::App& root() const { return *root_; }

 private:
  const CLI::App* root_ = nullptr;
};

class Completion final : public OfTheTree {
 public:
  std::string_view name() const override { return "completion"; }
  std::string_view help() const override { return "Print the completion script of a shell"; }
  void add_options(CLI::App& app) override {
    OfTheTree::add_options(app);
    app.add_option("SHELL", shell_, "The shell")
        ->required()
        ->check(CLI::IsMember(std::vector<std::string>{"bash", "zsh"}));
  }

  Status run(const Session& session) override {
    session.world.out << completion_script(shell_);
    return {};
  }

 private:
  std::string shell_;
};

/// What the scripts call.
class Complete final : public OfTheTree {
 public:
  std::string_view name() const override { return "complete"; }
  std::string_view help() const override { return "Print what may stand in the place of the last word"; }
  bool is_hidden() const override { return true; }
  void add_options(CLI::App& app) override {
    OfTheTree::add_options(app);
    app.add_option("WORD", words_, "The words so far");
  }

  Status run(const Session& session) override {
    const auto topics = [&] { return topics_of_server(session.world); };
    for (const std::string& each : completions(root(), words_, topics)) session.world.out << each << "\n";
    return {};
  }

 private:
  /// None when the server does not answer soon.
  std::vector<std::string> topics_of_server(const Surroundings& world) const {
    ServerOptions options;
    for (size_t i = 0; i + 1 < words_.size(); ++i) {
      if (words_[i] == "--server" || words_[i] == "--resp") options.address = words_[i + 1];
    }
    const Result<Server> server = server_of(options, world.variable);
    if (!server) return {};
    Result<Connection> connection = Connection::open(*server, kPatience);
    std::vector<std::string> names;
    std::string cursor;
    for (int page = 0; page < kMostPages && connection; ++page) {
      const std::vector<std::string_view> command{"TOPICS", cursor, "1000"};
      const Result<resp::Value> reply = connection->ask(command, kPatience);
      if (!reply || reply->items.size() != 2) break;
      for (const resp::Value& row : reply->items[1].items) {
        if (!row.items.empty()) names.push_back(row.items[0].text);
      }
      cursor = reply->items[0].text;
      if (cursor.empty()) break;
    }
    return names;
  }

  std::vector<std::string> words_;
};

class Manual final : public OfTheTree {
 public:
  std::string_view name() const override { return "manual"; }
  std::string_view help() const override { return "Print the manual page: delayq manual | man -l -"; }
  bool is_hidden() const override { return true; }
  Status run(const Session& session) override {
    session.world.out << manual_page(root());
    return {};
  }
};

}  // namespace

void add_shell_verbs(Verbs& verbs) {
  verbs.push_back(std::make_unique<Completion>());
  verbs.push_back(std::make_unique<Complete>());
  verbs.push_back(std::make_unique<Manual>());
}

}  // namespace delayq::cli
