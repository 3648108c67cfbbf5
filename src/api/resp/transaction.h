#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace delayq::resp {

/// The commands between MULTI and EXEC, kept until they run. Bounded in number and in bytes.
class Transaction {
 public:
  static constexpr size_t kMostCommands = 10'000;

  explicit Transaction(size_t most_bytes) : most_bytes_(most_bytes) {}

  /// kTooLarge when there is no room for it.
  Status add(std::span<const std::string_view> words);
  /// A command was refused, so none of them may run: forgets them.
  void abort();
  bool is_aborted() const { return is_aborted_; }

  size_t size() const { return commands_.size(); }
  /// The memory that it holds.
  size_t footprint() const {
    return text_.capacity() + words_.capacity() * sizeof(Word) + commands_.capacity() * sizeof(Command);
  }
  bool is_begun() const { return is_begun_; }
  void begin() { is_begun_ = true; }
  bool is_done() const { return next_ == commands_.size(); }
  /// The words of the next command to run. The span is valid until the next call, the words as long as this
  /// object. REQUIRES: no more is added, and it is not done.
  std::span<const std::string_view> take();

 private:
  struct Command {
    size_t first_word = 0;
    size_t words = 0;
  };
  struct Word {
    size_t begin = 0;  ///< in text_
    size_t size = 0;
  };

  size_t most_bytes_;
  std::string text_;
  std::vector<Word> words_;
  std::vector<Command> commands_;
  std::vector<std::string_view> taken_;
  size_t next_ = 0;
  bool is_begun_ = false;
  bool is_aborted_ = false;
};

}  // namespace delayq::resp
