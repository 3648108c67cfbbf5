#pragma once

#include "net/redis/client.h"

/// The scripts, as scripts/*.lua with the preludes in front (see CMakeLists.txt).
namespace delayq::embedded {
std::string_view redis_push();
std::string_view redis_take();
std::string_view redis_ack();
std::string_view redis_nack();
std::string_view redis_extend();
std::string_view redis_inspect();
std::string_view redis_cancel();
std::string_view redis_reschedule();
std::string_view redis_head();
std::string_view redis_due();
std::string_view redis_ended();
std::string_view redis_expire();
std::string_view redis_resign();
}  // namespace delayq::embedded

namespace delayq::redis::scripts {

using net::redis::Script;

inline const Script kPush{"push", embedded::redis_push()};
inline const Script kTake{"take", embedded::redis_take()};
inline const Script kAck{"ack", embedded::redis_ack()};
inline const Script kNack{"nack", embedded::redis_nack()};
inline const Script kExtend{"extend", embedded::redis_extend()};
inline const Script kInspect{"inspect", embedded::redis_inspect()};
inline const Script kCancel{"cancel", embedded::redis_cancel()};
inline const Script kReschedule{"reschedule", embedded::redis_reschedule()};
inline const Script kHead{"head", embedded::redis_head()};
inline const Script kDue{"due", embedded::redis_due()};
inline const Script kEnded{"ended", embedded::redis_ended()};
inline const Script kExpire{"expire", embedded::redis_expire()};
inline const Script kResign{"resign", embedded::redis_resign()};

}  // namespace delayq::redis::scripts
