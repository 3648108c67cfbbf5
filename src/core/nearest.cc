#include "core/nearest.h"

#include <algorithm>
#include <cstddef>

namespace delayq {

namespace {

/// Above this a word is not a slip of anything; it also bounds the work, which grows with the square.
constexpr size_t kMaxBytes = 64;

/// The distance of Damerau and Levenshtein, restricted: no letter is touched twice.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t other = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + other});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known) {
  if (word.size() > kMaxBytes) return {};
  std::string_view best;
  size_t fewest = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const size_t slips = distance(word, candidate);
    if (slips >= fewest || slips >= candidate.size()) continue;
    fewest = slips;
    best = candidate;
  }
  return best;
}

}  // namespace delayq
