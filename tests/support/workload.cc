#include "tests/support/workload.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "core/limits.h"
#include "tests/support/answer_text.h"

namespace delayq::support {

namespace {

const std::string kNobodysLease = "nobody";

/// A lease by its number in the book; every player looks up its own.
struct LeasePick {
  size_t back;
  bool expired;

  std::optional<size_t> number(const LeaseBook& leases) const {
    return expired ? leases.recent_expired(back) : leases.recent(back);
  }
  LeaseRef ref(const LeaseBook& leases) const {
    const std::optional<size_t> found = number(leases);
    return found ? leases.ref(*found) : LeaseRef{kNobodysLease, kNobodysLease};
  }
};

std::string to_text(const LeasePick& pick) {
  return fmt::format("{}lease -{}", pick.expired ? "expired " : "", pick.back);
}

struct NackPick {
  LeasePick lease;
  std::optional<Moment> retry_at;
  Keep keep;
  std::string reason;
  bool uncounted;

  NackRequest request(const LeaseBook& leases) const {
    return {lease.ref(leases), retry_at, keep, reason, lease.expired, uncounted};
  }
};

std::string to_text(const NackPick& pick) {
  return fmt::format("{} to {} reason={}{}", to_text(pick.lease),
                     pick.retry_at ? std::to_string(to_unix_ms(*pick.retry_at)) : "death", brief(pick.reason),
                     pick.uncounted ? " uncounted" : "");
}

struct RestorePick {
  SeenJob job;
  OnConflict on_conflict;
  uint32_t keep_count;
  Millis lease;

  RestoreRequest request() const { return {view_of(job), on_conflict, keep_count, lease}; }
};

std::string to_text(const RestorePick& pick) {
  return fmt::format("{} conflict={} keep={} lease={}", to_string(pick.job),
                     static_cast<int>(pick.on_conflict), pick.keep_count, pick.lease.count());
}

std::string to_text(const JobSpec& job) {
  return fmt::format("{}/{} due={} pri={} group={} body={}B lease={}{}{}{}", brief(job.topic), brief(job.id),
                     to_unix_ms(job.due), job.priority, brief(job.group), job.body.size(), job.lease.count(),
                     job.on_conflict == OnConflict::kReplace ? " replace"
                     : job.on_conflict == OnConflict::kKeep  ? " keep"
                                                             : "",
                     job.unique_across_topics ? " unique" : "",
                     job.outlet == Outlet::kCallback ? " called-back" : "");
}

template <class T>
std::string join(const std::vector<T>& items) {
  std::string text;
  for (const T& item : items) text += (text.empty() ? "" : ", ") + to_text(item);
  return text;
}

}  // namespace

Workload::Workload(uint64_t seed, WorkloadShape shape) : random_(seed), shape_(shape) {
  for (uint32_t i = 0; i < shape.topics; ++i) topics_.push_back("t" + std::to_string(i));
  for (uint32_t i = 0; i < shape.ids; ++i) ids_.push_back("id" + std::to_string(i));
  // Names of the maximum length must work like short ones.
  topics_.back() = std::string(200, 't');
  ids_.back() = std::string(255, '\xff');
  ids_.front() = std::string("\0 /", 3);
  for (uint32_t i = 0; i < shape.schedules; ++i) schedules_.push_back("s" + std::to_string(i));
  if (schedules_.empty()) return;
  schedules_.back() = std::string(200, 's');
  // Jobs of schedules are cancelled, moved and looked up like others.
  for (uint64_t number = 0; number < 2; ++number) ids_.push_back(occurrence(schedules_.front(), number));
}

const std::vector<Workload::Choice>& Workload::choices() {
  static const std::vector<Choice> kChoices{
      {24, &Workload::push},          {8, &Workload::restore},
      {18, &Workload::take},          {12, &Workload::ack},
      {10, &Workload::nack},          {5, &Workload::resolve_expired},
      {6, &Workload::extend},         {6, &Workload::cancel},
      {2, &Workload::cancel_group},   {8, &Workload::reschedule},
      {3, &Workload::redrive},        {2, &Workload::redrive_oldest},
      {1, &Workload::purge},          {4, &Workload::get},
      {2, &Workload::locate},         {4, &Workload::list},
      {3, &Workload::counts},         {1, &Workload::topics},
      {2, &Workload::forecast},       {1, &Workload::settings},
      {6, &Workload::only_tick},      {10, &Workload::turn},
      {2, &Workload::read_schedules},
  };
  return kChoices;
}

Step Workload::next() {
  static const uint32_t kTotal = std::accumulate(
      choices().begin(), choices().end(), 0U, [](uint32_t sum, const Choice& c) { return sum + c.weight; });
  move_clock();
  Step step;
  step.now = now_;
  step.tick_first = random_.chance(7, 10);
  uint64_t ticket = random_.below(kTotal);
  for (const Choice& choice : choices()) {
    if (ticket < choice.weight) {
      (this->*choice.make)(step);
      break;
    }
    ticket -= choice.weight;
  }
  return step;
}

// ---- random choices

void Workload::move_clock() {
  if (random_.chance(1, 4) && go_to_an_edge()) return;
  const uint64_t ticket = random_.below(1'000);
  if (ticket < 550) return;
  if (ticket < 850) {
    now_ += Millis{1 + ms_below(50)};
  } else if (ticket < 970) {
    now_ += Millis{ms_below(10'000)};
  } else if (ticket < 990 || !shape_.clock_jumps) {
    now_ += Millis{ms_below(20 * 86'400'000LL)};
  } else if (ticket < 997) {
    now_ -= Millis{ms_below(7'200'000)};
  } else {
    now_ += Millis{ms_below(300 * 86'400'000LL)};
  }
}

bool Workload::go_to_an_edge() {
  const Moment edge = edges_[random_.below(edges_.size())] - Millis{ms_below(2)};
  // Only a short way: a jump to a far edge would pass everything else.
  if (edge < now_ || edge > now_ + std::chrono::minutes{1}) return false;
  now_ = edge;
  return true;
}

Moment Workload::remember(Moment moment) {
  edges_[next_edge_++ % edges_.size()] = moment;
  return moment;
}

Moment Workload::moment_near() {
  if (random_.chance(1, 10)) return edges_[random_.below(edges_.size())];
  return remember(draw_moment());
}

Moment Workload::draw_moment() {
  switch (random_.below(6)) {
    case 0:
      return now_ - Millis{ms_below(1'000)};
    case 1:
      return now_;
    case 2:
      return now_ + Millis{1 + ms_below(100)};
    case 3:
      return now_ + Millis{ms_below(20'000)};
    case 4:
      return now_ + Millis{ms_below(20 * 86'400'000LL)};
    default:
      return random_.chance(1, 10) ? now_ + Limits::kMaxDelay : now_ + Millis{ms_below(1'000)};
  }
}

Keep Workload::keep() {
  const auto count = shape_.restarts ? 1'000'000 : static_cast<uint32_t>(random_.between(1, 6));
  switch (random_.below(3)) {
    case 0:
      return {};
    case 1:
      return {remember(now_ + Millis{1 + ms_below(5'000)}), count};
    default:
      return {now_ + std::chrono::days{400}, count};
  }
}

std::string Workload::bytes(uint32_t most) {
  std::string text(random_.below(most + 1), '\0');
  for (char& byte : text) byte = static_cast<char>(random_.next());
  return text;
}

JobSpec Workload::job() {
  JobSpec job(topic(), id());
  job.due = moment_near();
  job.body = bytes(shape_.largest_body);
  if (random_.chance(1, 3)) job.options = bytes(20);
  if (random_.chance(1, 3)) job.group = "g" + std::to_string(random_.below(shape_.groups));
  if (random_.chance(1, 3))
    job.priority = random_.chance(1, 4) ? UINT32_MAX : static_cast<uint32_t>(random_.below(3));
  job.on_conflict = static_cast<OnConflict>(random_.below(3));
  job.unique_across_topics = random_.chance(1, 20);
  if (random_.chance(1, 4)) job.outlet = Outlet::kCallback;
  job.lease = own_lease();
  return job;
}

Millis Workload::own_lease() {
  if (!random_.chance(1, 4)) return Millis::zero();
  return random_.chance(1, 20) ? Limits::kMaxLease : Millis{1 + ms_below(20'000)};
}

SeenJob Workload::old_job() {
  const JobSpec spec = job();
  SeenJob old;
  old.topic = spec.topic;
  old.id = spec.id;
  old.group = spec.group;
  old.body = spec.body;
  old.options = spec.options;
  old.priority = spec.priority;
  old.due = spec.due;
  old.outlet = spec.outlet;
  if (random_.chance(1, 2)) old.outcome = bytes(60);
  old.state = state();
  old.attempts = static_cast<uint32_t>(random_.below(5));
  old.pushed = now_ - Millis{ms_below(100'000)};
  if (!is_live(old.state)) old.until = remember(now_ + Millis{1 + ms_below(20'000)});
  if (old.state == JobState::kReserved) old.until = moment_near();
  return old;
}

// ---- a job's life

void Workload::restore(Step& step) {
  std::vector<RestorePick> picks(batch());
  for (RestorePick& pick : picks) {
    pick.job = old_job();
    pick.on_conflict = static_cast<OnConflict>(random_.below(3));
    pick.lease = own_lease();
    pick.keep_count = shape_.restarts ? 1'000'000 : static_cast<uint32_t>(random_.between(1, 6));
  }
  step.text = "restore " + join(picks);
  step.run = [picks](Player& player) {
    std::vector<RestoreRequest> requests;
    for (const RestorePick& pick : picks) requests.push_back(pick.request());
    return support::to_text(player.driver.restore_all(requests));
  };
}

void Workload::push(Step& step) {
  std::vector<JobSpec> jobs(batch());
  for (JobSpec& each : jobs) each = job();
  step.text = "push " + join(jobs);
  step.run = [jobs](Player& player) {
    std::vector<PushAnswer> answers = player.driver.push_all(jobs);
    for (size_t i = 0; i < answers.size(); ++i) {
      // If several jobs elsewhere conflict, any of them may be named.
      if (!jobs[i].unique_across_topics || answers[i].outcome != PushOutcome::kConflict) continue;
      answers[i].state = JobState::kDelayed;
      answers[i].due = Moment{};
    }
    return support::to_text(answers);
  };
}

void Workload::take(Step& step) {
  struct Request {
    std::string topic;
    TakeRequest rest;
  } request{topic(), {}};
  request.rest.count = static_cast<uint32_t>(random_.below(4));
  request.rest.lease_until = remember(now_ + Millis{ms_below(random_.chance(1, 2) ? 200 : 20'000)});
  request.rest.own_leases = random_.chance(1, 2);
  if (random_.chance(1, 6)) request.rest.max_reserved = static_cast<uint32_t>(random_.between(1, 4));
  request.rest.auto_ack = random_.chance(1, 10);
  request.rest.keep_done = keep();
  if (random_.chance(1, 3)) request.rest.outlet = Outlet::kCallback;
  // With one byte, every engine returns one job, whatever it counts.
  if (random_.chance(1, 8)) request.rest.max_bytes = 1;
  step.text =
      fmt::format("take {} of {} until={} max_reserved={}{}{}{}{}", request.rest.count, brief(request.topic),
                  to_unix_ms(request.rest.lease_until), request.rest.max_reserved,
                  request.rest.max_bytes == 1 ? " max_bytes=1" : "", request.rest.auto_ack ? " auto_ack" : "",
                  request.rest.own_leases ? " own_leases" : "",
                  request.rest.outlet == Outlet::kCallback ? " called-back" : "");
  step.run = [request](Player& player) {
    TakeRequest real = request.rest;
    real.topic = request.topic;
    const std::vector<Taken> taken = player.driver.take(real);
    for (const Taken& each : taken) {
      if (!each.lease.empty()) player.leases.add(each.job.topic, each.lease);
    }
    return support::to_text(taken);
  };
}

void Workload::ack(Step& step) {
  struct Item {
    LeasePick lease;
    Keep keep;
    std::string outcome;
  };
  std::vector<Item> items(batch());
  step.text = "ack";
  const Keep same = keep();
  for (Item& item : items) {
    item = {{lease_back(), false}, same, random_.chance(1, 2) ? bytes(20) : std::string{}};
    step.text += " " + to_text(item.lease);
  }
  step.run = [items](Player& player) {
    std::vector<AckRequest> requests;
    for (const Item& item : items)
      requests.push_back({item.lease.ref(player.leases), item.keep, item.outcome});
    return support::to_text(player.driver.ack_all(requests));
  };
}

void Workload::nack(Step& step) { nack_leases(step, false); }

void Workload::resolve_expired(Step& step) { nack_leases(step, true); }

void Workload::nack_leases(Step& step, bool expired) {
  std::vector<NackPick> picks(batch());
  for (NackPick& pick : picks) {
    pick.lease = {expired ? random_.below(4) : lease_back(), expired};
    if (random_.chance(3, 4)) pick.retry_at = moment_near();
    pick.keep = keep();
    pick.reason = random_.chance(1, 4) ? std::string{} : bytes(40);
    pick.uncounted = pick.retry_at && random_.chance(1, 8);
  }
  step.text = "nack " + join(picks);
  step.run = [picks](Player& player) {
    std::vector<NackRequest> requests;
    for (const NackPick& pick : picks) requests.push_back(pick.request(player.leases));
    return support::to_text(player.driver.nack_all(requests));
  };
}

void Workload::extend(Step& step) {
  struct Item {
    LeasePick lease;
    Moment until{};
    bool never_sooner = false;
  };
  std::vector<Item> items(batch());
  step.text = "extend";
  for (Item& item : items) {
    item.lease = {lease_back(), false};
    item.until = remember(now_ + Millis{ms_below(30'000)});
    item.never_sooner = random_.chance(1, 3);
    step.text += fmt::format(" {} until={}{}", to_text(item.lease), to_unix_ms(item.until),
                             item.never_sooner ? " or later" : "");
  }
  step.run = [items](Player& player) {
    std::vector<ExtendRequest> requests;
    for (const Item& item : items)
      requests.push_back({item.lease.ref(player.leases), item.until, item.never_sooner});
    const std::vector<ExtendAnswer> extended = player.driver.extend_all(requests);
    std::string said;
    for (size_t i = 0; i < items.size(); ++i) {
      said += extended[i] ? fmt::format(" {}", to_unix_ms(*extended[i])) : " stale";
      if (extended[i]) player.leases.unmark_expired(*items[i].lease.number(player.leases));
    }
    return said;
  };
}

// ---- by id, by group, by topic

void Workload::cancel(Step& step) {
  std::vector<JobSpec> jobs(batch());
  step.text = "cancel";
  for (JobSpec& each : jobs) {
    each = JobSpec(topic(), id());
    step.text += " " + brief(each.topic) + "/" + brief(each.id);
  }
  step.run = [jobs](Player& player) {
    std::vector<JobRef> refs;
    for (const JobSpec& each : jobs) refs.push_back({each.topic, each.id});
    return support::to_text(player.driver.cancel_all(refs));
  };
}

void Workload::cancel_group(Step& step) {
  const std::string group = "g" + std::to_string(random_.below(shape_.groups));
  const auto at_once = static_cast<uint32_t>(random_.between(1, 10));
  step.text = fmt::format("cancel_group {} in steps of {}", group, at_once);
  step.run = [group, at_once](Player& player) {
    return support::to_text(player.driver.cancel_group(group, at_once));
  };
}

void Workload::reschedule(Step& step) {
  std::vector<JobSpec> jobs(batch());
  step.text = "reschedule";
  for (JobSpec& each : jobs) {
    each = JobSpec(topic(), id()).due_at(moment_near());
    step.text += fmt::format(" {}/{} to {}", brief(each.topic), brief(each.id), to_unix_ms(each.due));
  }
  step.run = [jobs](Player& player) {
    std::vector<RescheduleRequest> requests;
    for (const JobSpec& each : jobs) requests.push_back({{each.topic, each.id}, each.due});
    return support::to_text(player.driver.reschedule_all(requests));
  };
}

void Workload::redrive(Step& step) {
  std::vector<std::string> ids(batch());
  for (std::string& each : ids) each = id();
  step.text = "redrive";
  for (const std::string& each : ids) step.text += " " + brief(each);
  step.run = [topic = topic(), ids](Player& player) {
    return std::to_string(player.driver.redrive(topic, {ids.begin(), ids.end()}));
  };
}

void Workload::redrive_oldest(Step& step) {
  const auto max = shape_.restarts ? 1'000'000 : static_cast<uint32_t>(random_.between(1, 3));
  step.text = fmt::format("redrive_oldest {}", max);
  step.run = [topic = topic(), max](Player& player) {
    return std::to_string(player.driver.redrive_oldest(topic, max));
  };
}

void Workload::purge(Step& step) {
  // All jobs of a state: with a maximum, an engine may choose which ones it removes.
  step.text = "purge";
  step.run = [topic = topic(), state = state()](Player& player) {
    return std::to_string(player.driver.purge(topic, state));
  };
}

// ---- reading

void Workload::get(Step& step) {
  const JobSpec wanted(topic(), id());
  step.text = "get " + brief(wanted.topic) + "/" + brief(wanted.id);
  step.run = [wanted](Player& player) {
    const std::optional<SeenJob> found = player.driver.get(wanted.topic, wanted.id);
    return found ? to_string(*found) : "nothing";
  };
}

void Workload::locate(Step& step) {
  step.text = "locate";
  step.run = [id = id()](Player& player) {
    return support::to_text(player.driver.locate(id)) + " of " +
           support::to_text(player.driver.locate(id, Among::kAll));
  };
}

void Workload::list(Step& step) {
  ListRequest request;
  request.state = state();
  request.limit = static_cast<uint32_t>(random_.between(1, 8));
  request.with_bodies = random_.chance(1, 2);
  if (random_.chance(1, 3)) request.id_prefix = "id1";
  if (random_.chance(1, 3)) request.outcome_contains = "a";
  // Not drawn: the seeds that are kept stay what they were.
  if (request.limit % 4 == 1) request.due.from = now_ - Millis{100 * request.limit};
  if (request.limit % 3 == 1) request.due.before = now_ + Millis{300 * request.limit};
  step.text = fmt::format("list {} {}", name_of(request.state), request.id_prefix);
  step.run = [request, topic = topic(), restarts = shape_.restarts](Player& player) {
    ListRequest real = request;
    real.topic = topic;
    return support::to_text(in_comparable_order(player.driver.list_all(real), restarts));
  };
}

void Workload::counts(Step& step) {
  step.text = "counts";
  step.run = [topic = random_.chance(1, 4) ? std::string{} : topic()](Player& player) {
    return support::to_text(player.driver.counts(topic));
  };
}

void Workload::topics(Step& step) {
  const auto page = static_cast<uint32_t>(random_.between(1, 5));
  step.text = "topics";
  step.run = [page](Player& player) { return support::to_text(player.driver.topic_names(page)); };
}

void Workload::forecast(Step& step) {
  // The total is exact whatever the engine's resolution is.
  const bool of_all = random_.chance(1, 3);
  step.text = "forecast";
  step.run = [topic = of_all ? std::string{} : topic(), now = now_](Player& player) {
    ForecastRequest request;
    request.topic = topic;
    request.from = now - std::chrono::days{1'000};
    request.to = now + std::chrono::days{200 * 366};
    request.bins = 10;
    const Forecast forecast = player.driver.forecast(request);
    return std::to_string(std::accumulate(forecast.bins.begin(), forecast.bins.end(), uint64_t{0}));
  };
}

void Workload::settings(Step& step) {
  step.text = "settings";
  step.run = [topic = topic(), note = bytes(20)](Player& player) {
    player.driver.store_settings(topic, note);
    return support::to_text(player.driver.load_settings());
  };
}

void Workload::only_tick(Step& step) {
  step.tick_first = true;
  step.text = "tick";
  step.run = [](Player&) { return std::string{}; };
}

std::vector<SeenJob> in_comparable_order(std::vector<SeenJob> jobs, bool restarts) {
  // Jobs that fell due in the same call entered the state together: their order is not defined.
  if (restarts || (!jobs.empty() && is_live(jobs.front().state))) {
    std::sort(jobs.begin(), jobs.end(), [](const SeenJob& a, const SeenJob& b) { return a.id < b.id; });
  }
  return jobs;
}

}  // namespace delayq::support
