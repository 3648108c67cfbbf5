// Feeds every fuzzer its corpus, without libFuzzer: what the fuzzers found once is tested by every compiler
// and every sanitizer.
//   fuzz_replay CORPUS           CORPUS/x/* go to fuzz_x; a fuzzer without input, or input without a fuzzer,
//   is an error fuzz_replay CORPUS x FILE    one input
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/replayed.h"

namespace {

using delayq::fuzz::Replayed;
using delayq::fuzz::replayed;

void replay(const Replayed& fuzzer, const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  std::printf("%s\n", file.c_str());
  // Printed before the fuzzer runs, so that a crash names its input.
  std::fflush(stdout);
  fuzzer.run(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

size_t replay_corpus(const Replayed& fuzzer, const std::filesystem::path& folder) {
  if (!std::filesystem::is_directory(folder)) return 0;
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    replay(fuzzer, entry.path());
    ++count;
  }
  return count;
}

bool is_known(std::string_view subject) {
  for (const Replayed& fuzzer : replayed())
    if (fuzzer.subject == subject) return true;
  return false;
}

int replay_all(const std::filesystem::path& corpus) {
  size_t count = 0;
  for (const Replayed& fuzzer : replayed()) {
    const size_t inputs = replay_corpus(fuzzer, corpus / fuzzer.subject);
    if (inputs == 0) {
      std::fprintf(stderr, "fuzz_replay: no input for fuzz_%s\n", std::string(fuzzer.subject).c_str());
      return 1;
    }
    count += inputs;
  }
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    if (is_known(entry.path().filename().native())) continue;
    std::fprintf(stderr, "fuzz_replay: %s belongs to no fuzzer\n", entry.path().c_str());
    return 1;
  }
  std::printf("%zu inputs\n", count);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) return replay_all(argv[1]);
  if (argc == 4) {
    for (const Replayed& fuzzer : replayed()) {
      if (fuzzer.subject != argv[2]) continue;
      replay(fuzzer, argv[3]);
      return 0;
    }
  }
  std::fprintf(stderr, "usage: fuzz_replay CORPUS | fuzz_replay CORPUS SUBJECT FILE\n");
  return 2;
}
