#pragma once

#include <rapidcheck.h>

namespace delayq {

/// Values from all of [low, high) in every test case. A plain rc::gen::inRange starts with the low end
/// and reaches the high end only in the last few cases. This suits sizes of containers, but hides
/// errors with large numbers.
template <class T>
rc::Gen<T> evenly(T low, T high) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(low, high));
}

}  // namespace delayq
