#pragma once

#include <string_view>
#include <vector>

namespace delayq {

/// The known word that `word` was probably meant to be: the one with the fewest slips of a finger between
/// them (a letter more, less, another, or two swapped). Empty when none is near enough to be worth saying.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace delayq
