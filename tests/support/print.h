#pragma once

#include <ostream>

#include "tests/support/answer_text.h"

/// Lets GoogleTest print our enumerations by name.
namespace delayq {

inline void PrintTo(JobState state, std::ostream* out) { *out << name_of(state); }
inline void PrintTo(AckOutcome outcome, std::ostream* out) { *out << support::to_text(outcome); }
inline void PrintTo(NackOutcome outcome, std::ostream* out) { *out << support::to_text(outcome); }
inline void PrintTo(CancelOutcome outcome, std::ostream* out) { *out << support::to_text(outcome); }
inline void PrintTo(RescheduleOutcome outcome, std::ostream* out) { *out << support::to_text(outcome); }
inline void PrintTo(PushOutcome outcome, std::ostream* out) { *out << support::to_text(outcome); }
inline void PrintTo(ErrorCode code, std::ostream* out) { *out << traits_of(code).name; }

namespace support {

inline void PrintTo(const Taken& taken, std::ostream* out) { *out << to_text(taken); }

}  // namespace support
}  // namespace delayq
