#include "delivery/webhook/figures.h"

namespace delayq::webhook {

CallClass class_of(const CallResult& result) {
  switch (result.error) {
    case CallError::kNone: {
      const int hundreds = result.status / 100;
      if (hundreds < 1 || hundreds > 5) return CallClass::kOther;
      return static_cast<CallClass>(hundreds - 1);
    }
    case CallError::kRefusedAddress:
      return CallClass::kRefused;
    case CallError::kResolve:
      return CallClass::kResolve;
    case CallError::kConnect:
      return CallClass::kConnect;
    case CallError::kTls:
      return CallClass::kTls;
    case CallError::kTimeout:
      return CallClass::kTimeout;
    case CallError::kBadCall:
    case CallError::kBroken:
    case CallError::kNoRoom:
      break;
  }
  return CallClass::kOther;
}

}  // namespace delayq::webhook
