#pragma once

#include "net/redis/client.h"

/// The scripts: scripts/*.lua with the preludes before them (see CMakeLists.txt).
namespace delayq::embedded {
std::string_view redis_push();
std::string_view redis_take();
std::string_view redis_ack();
std::string_view redis_nack();
std::string_view redis_extend();
std::string_view redis_cancel();
std::string_view redis_reschedule();
std::string_view redis_held();
std::string_view redis_head();
std::string_view redis_due();
std::string_view redis_ended();
std::string_view redis_expire();
std::string_view redis_resign();
std::string_view redis_meta();
std::string_view redis_rights();
std::string_view redis_restore();
std::string_view redis_redrive();
std::string_view redis_redrive_oldest();
std::string_view redis_purge();
std::string_view redis_trim();
std::string_view redis_cancel_group();
std::string_view redis_get();
std::string_view redis_locate();
std::string_view redis_list();
std::string_view redis_counts();
std::string_view redis_topics();
std::string_view redis_sizes();
std::string_view redis_forecast();
std::string_view redis_settings();
std::string_view redis_missed();
std::string_view redis_mend();
std::string_view redis_turn();
std::string_view redis_schedule();
std::string_view redis_schedules();
std::string_view redis_alarm();
std::string_view redis_mend_schedules();
std::string_view redis_cooling();
std::string_view redis_cool();
std::string_view redis_peek();
std::string_view redis_warm();
std::string_view redis_wishes();
std::string_view redis_readers();
}  // namespace delayq::embedded

namespace delayq::redis::scripts {

using net::redis::Script;

inline const Script kPush{"push", embedded::redis_push()};
inline const Script kTake{"take", embedded::redis_take()};
inline const Script kAck{"ack", embedded::redis_ack()};
inline const Script kNack{"nack", embedded::redis_nack()};
inline const Script kExtend{"extend", embedded::redis_extend()};
inline const Script kCancel{"cancel", embedded::redis_cancel()};
inline const Script kReschedule{"reschedule", embedded::redis_reschedule()};
inline const Script kHeld{"held", embedded::redis_held()};
inline const Script kHead{"head", embedded::redis_head()};
inline const Script kDue{"due", embedded::redis_due()};
inline const Script kEnded{"ended", embedded::redis_ended()};
inline const Script kExpire{"expire", embedded::redis_expire()};
inline const Script kResign{"resign", embedded::redis_resign()};
inline const Script kMeta{"meta", embedded::redis_meta()};
inline const Script kRights{"rights", embedded::redis_rights()};
inline const Script kRestore{"restore", embedded::redis_restore()};
inline const Script kRedrive{"redrive", embedded::redis_redrive()};
inline const Script kRedriveOldest{"redrive_oldest", embedded::redis_redrive_oldest()};
inline const Script kPurge{"purge", embedded::redis_purge()};
inline const Script kTrim{"trim", embedded::redis_trim()};
inline const Script kCancelGroup{"cancel_group", embedded::redis_cancel_group()};
inline const Script kGet{"get", embedded::redis_get()};
inline const Script kLocate{"locate", embedded::redis_locate()};
inline const Script kList{"list", embedded::redis_list()};
inline const Script kCounts{"counts", embedded::redis_counts()};
inline const Script kTopics{"topics", embedded::redis_topics()};
inline const Script kSizes{"sizes", embedded::redis_sizes()};
inline const Script kForecast{"forecast", embedded::redis_forecast()};
inline const Script kSettings{"settings", embedded::redis_settings()};
inline const Script kMissed{"missed", embedded::redis_missed()};
inline const Script kMend{"mend", embedded::redis_mend()};
inline const Script kTurn{"turn", embedded::redis_turn()};
inline const Script kSchedule{"schedule", embedded::redis_schedule()};
inline const Script kSchedules{"schedules", embedded::redis_schedules()};
inline const Script kAlarm{"alarm", embedded::redis_alarm()};
inline const Script kMendSchedules{"mend_schedules", embedded::redis_mend_schedules()};
// Of the cold store.
inline const Script kCooling{"cooling", embedded::redis_cooling()};
inline const Script kCool{"cool", embedded::redis_cool()};
inline const Script kPeek{"peek", embedded::redis_peek()};
inline const Script kWarm{"warm", embedded::redis_warm()};
inline const Script kWishes{"wishes", embedded::redis_wishes()};
inline const Script kReaders{"readers", embedded::redis_readers()};

}  // namespace delayq::redis::scripts
