#pragma once

namespace delayq::journal {

/// For Canary::kWrongCrc alone: with false, records are taken for whole whatever their checksum says, in the
/// whole process. Only the canary ever says false.
void compare_checksums(bool compare);

}  // namespace delayq::journal
