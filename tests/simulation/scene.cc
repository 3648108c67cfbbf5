#include "tests/simulation/scene.h"

#include <array>

#include <fmt/format.h>

namespace delayq::simulation {

Shape Shape::random(Random& random) {
  Shape shape;
  shape.topics = static_cast<uint32_t>(random.between(1, 6));
  shape.ids = static_cast<uint32_t>(random.between(3, 40));
  shape.groups = static_cast<uint32_t>(random.between(1, 4));
  constexpr std::array<uint32_t, 5> kBodies{20, 100, 400, 1'500, 9'000};
  shape.body_bytes = kBodies[random.below(kBodies.size())];
  shape.actions = static_cast<uint32_t>(random.between(50, 400));
  shape.lives = static_cast<uint32_t>(random.between(2, 6));
  shape.disk_eagerness = static_cast<uint32_t>(random.between(1, 20));
  shape.ticks_late = random.chance(1, 4);
  return shape;
}

std::string Scene::topic(Random& random) const {
  // Letters of other scripts are allowed in a topic.
  const uint64_t number = random.below(shape_.topics);
  return number == 0 ? "заказ" : fmt::format("t{}", number);
}

std::string Scene::id() { return fmt::format("job {}", random_.below(shape_.ids)); }

std::string Scene::group(Random& random) const {
  return fmt::format("group {}", random.below(shape_.groups));
}

std::string Scene::body() {
  std::string text = fmt::format("body number {:<12}", ++last_body_);
  const uint64_t size = random_.below(chance(90) ? shape_.body_bytes / 4 + 1 : shape_.body_bytes + 1);
  while (text.size() < size) text.push_back(static_cast<char>(random_.next()));
  return text;
}

Millis Scene::delay() {
  constexpr std::array<uint64_t, 7> kMagnitudes{1, 20, 300, 10'000, 600'000, 864'000'000, 3'000'000'000'000};
  const size_t likely = chance(97) ? kMagnitudes.size() - 2 : kMagnitudes.size();
  return Millis{static_cast<int64_t>(random_.below(kMagnitudes[random_.below(likely)]))};
}

Scene::Ticket Scene::ask(std::string verb) {
  open_.emplace(++last_ticket_, std::move(verb));
  return last_ticket_;
}

bool Scene::answered(Ticket ticket) {
  if (open_.erase(ticket) == 1) return true;
  fail("reply", fmt::format("to request {}, which was answered before, or whose asker is gone", ticket));
  return false;
}

void Scene::check_error(std::string_view verb, const Error& error) {
  const bool excused = world_.checked().has_failed() || world_.is_careful();
  if (!excused) fail(verb, "answered " + to_string(error));
}

void Scene::fail(std::string_view verb, const std::string& what) {
  world_.witness().fail(fmt::format("{}: {}", verb, what));
}

}  // namespace delayq::simulation
