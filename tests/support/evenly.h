#pragma once

#include <rapidcheck.h>

namespace delayq {

/// From all of [low, high) in every test case. A plain rc::gen::inRange starts with the low end and reaches
/// the high end only in the last few cases, which suits sizes of containers and hides what is wrong with
/// large numbers.
template <class T>
rc::Gen<T> evenly(T low, T high) {
  return rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(low, high));
}

}  // namespace delayq
