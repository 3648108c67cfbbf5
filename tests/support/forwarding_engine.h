#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace delayq::support {

/// Forwards every call to another engine. A test overrides the verb that should be wrong, slow or failing.
class ForwardingEngine : public Engine {
 public:
  explicit ForwardingEngine(Engine& inner) : inner_(inner) {}

  bool has_parts() const override { return inner_.has_parts(); }

  void push(Moment now, std::span<const NewJob> jobs, Reply<std::vector<PushAnswer>> reply) override {
    inner_.push(now, jobs, std::move(reply));
  }
  void restore(Moment now, std::span<const RestoreRequest> jobs,
               Reply<std::vector<PushAnswer>> reply) override {
    inner_.restore(now, jobs, std::move(reply));
  }
  void take(Moment now, const TakeRequest& request, Reply<TakeAnswer> reply) override {
    inner_.take(now, request, std::move(reply));
  }
  void ack(Moment now, std::span<const AckRequest> leases, Reply<std::vector<AckOutcome>> reply) override {
    inner_.ack(now, leases, std::move(reply));
  }
  void nack(Moment now, std::span<const NackRequest> leases, Reply<std::vector<NackOutcome>> reply) override {
    inner_.nack(now, leases, std::move(reply));
  }
  void extend(Moment now, std::span<const ExtendRequest> leases,
              Reply<std::vector<ExtendAnswer>> reply) override {
    inner_.extend(now, leases, std::move(reply));
  }

  void held(Moment now, std::span<const LeaseRef> leases, bool with_bodies, Reply<HeldJobs> reply) override {
    inner_.held(now, leases, with_bodies, std::move(reply));
  }
  void watch_due(bool is_on) override { inner_.watch_due(is_on); }
  void tell_others(std::string_view message) override { inner_.tell_others(message); }

  void cancel(Moment now, std::span<const JobRef> jobs, Reply<std::vector<CancelOutcome>> reply) override {
    inner_.cancel(now, jobs, std::move(reply));
  }
  void cancel_group(Moment now, const GroupCancelRequest& request, Reply<GroupCancelAnswer> reply) override {
    inner_.cancel_group(now, request, std::move(reply));
  }
  void reschedule(Moment now, std::span<const RescheduleRequest> jobs,
                  Reply<std::vector<RescheduleOutcome>> reply) override {
    inner_.reschedule(now, jobs, std::move(reply));
  }
  void redrive(Moment now, std::string_view topic, std::span<const std::string_view> ids,
               Reply<uint64_t> reply) override {
    inner_.redrive(now, topic, ids, std::move(reply));
  }
  void redrive_oldest(Moment now, std::string_view topic, uint32_t max, Reply<uint64_t> reply) override {
    inner_.redrive_oldest(now, topic, max, std::move(reply));
  }
  void purge(Moment now, std::string_view topic, JobState state, uint32_t max,
             Reply<uint64_t> reply) override {
    inner_.purge(now, topic, state, max, std::move(reply));
  }
  void trim(Moment now, const TrimRequest& request, Reply<TrimAnswer> reply) override {
    inner_.trim(now, request, std::move(reply));
  }

  void get(Moment now, const JobRef& job, Reply<std::optional<FoundJob>> reply) override {
    inner_.get(now, job, std::move(reply));
  }
  void locate(Moment now, std::string_view id, Among among, Reply<std::vector<std::string>> reply) override {
    inner_.locate(now, id, among, std::move(reply));
  }
  void list(Moment now, const ListRequest& request, Reply<JobPage> reply) override {
    inner_.list(now, request, std::move(reply));
  }
  void counts(Moment now, std::string_view topic, Reply<TopicCounts> reply) override {
    inner_.counts(now, topic, std::move(reply));
  }
  void topics(Moment now, std::string_view cursor, uint32_t limit, Reply<TopicPage> reply) override {
    inner_.topics(now, cursor, limit, std::move(reply));
  }
  void forecast(Moment now, const ForecastRequest& request, Reply<Forecast> reply) override {
    inner_.forecast(now, request, std::move(reply));
  }
  EngineUsage usage() const override { return inner_.usage(); }
  CommitFigures commits() const override { return inner_.commits(); }

  void store_settings(std::string_view topic, std::string_view settings, Reply<bool> reply) override {
    inner_.store_settings(topic, settings, std::move(reply));
  }
  void load_settings(Reply<std::vector<TopicSettings>> reply) override {
    inner_.load_settings(std::move(reply));
  }

  void turn(Moment now, std::span<const TurnRequest> requests,
            Reply<std::vector<TurnAnswer>> reply) override {
    inner_.turn(now, requests, std::move(reply));
  }
  void get_schedule(Moment now, std::string_view name, Reply<std::optional<StoredSchedule>> reply) override {
    inner_.get_schedule(now, name, std::move(reply));
  }
  void list_schedules(Moment now, const ScheduleListRequest& request, Reply<SchedulePage> reply) override {
    inner_.list_schedules(now, request, std::move(reply));
  }

  Moment tick(Moment now) override { return inner_.tick(now); }
  bool poll(EngineListener& listener) override { return inner_.poll(listener); }
  void set_wakeup(std::function<void()> wakeup) override { inner_.set_wakeup(std::move(wakeup)); }
  void flush(Reply<bool> reply) override { inner_.flush(std::move(reply)); }
  void backup(std::string_view name, Reply<BackupReport> reply) override {
    inner_.backup(name, std::move(reply));
  }

 protected:
  Engine& inner_;
};

}  // namespace delayq::support
