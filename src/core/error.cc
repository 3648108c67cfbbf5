#include "core/error.h"

namespace delayq {

namespace {

constexpr bool table_follows_enum() {
  for (size_t i = 0; i < kErrorTable.size(); ++i) {
    if (kErrorTable[i].code != static_cast<ErrorCode>(i)) return false;
  }
  return kErrorTable.back().code == ErrorCode::kInternal;
}
static_assert(table_follows_enum(), "traits_of() indexes kErrorTable by the enum's value");

}  // namespace

std::string to_string(const Error& error) {
  std::string text = error.op;
  if (!text.empty()) text += ": ";
  text += traits_of(error.code).name;
  if (!error.detail.empty()) {
    text += ": ";
    text += error.detail;
  }
  return text;
}

}  // namespace delayq
