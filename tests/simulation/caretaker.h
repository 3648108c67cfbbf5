#pragma once

#include "tests/simulation/scene.h"

namespace delayq::simulation {

/// Those who look after the server: dead letters, settings, dashboards.
class Caretaker {
 public:
  explicit Caretaker(Scene& scene) : scene_(scene) {}

  void redrive();
  void purge();
  void look_up();
  void list();
  void watch();  ///< topics, stats, totals, forecast
  void change_settings();
  void pause_or_resume();
  void take_along();  ///< a page of an export
  void back_up();

 private:
  /// A Reply that only notes that it came, and complains about errors other than `expected`.
  template <class T>
  Reply<T> note(std::string verb, std::optional<ErrorCode> expected = {});

  Scene& scene_;
  std::string cursor_;  // of the last page that had one, whatever has happened since
  std::string cursor_topic_;
  JobState cursor_state_ = JobState::kDelayed;
  std::string export_cursor_;
};

}  // namespace delayq::simulation
