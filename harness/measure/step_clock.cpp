#include "harness/measure/step_clock.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstddef>

#include "harness/measure/device_clock.h"

namespace rematch {

void StepClock::begin() {
  marks_.clear();
  events_.clear();
  start_ = now_on(device_);
  mark();
}

void StepClock::part_done() { mark(); }

void StepClock::end() {
  mark();
  whole_ = now_on(device_) - start_;
}

std::vector<StepClock::Nanoseconds> StepClock::parts() const {
  std::vector<Nanoseconds> parts;
  for (std::size_t index = 1; index < marks_.size(); ++index) {
    parts.emplace_back(marks_[index] - marks_[index - 1]);
  }
  for (std::size_t index = 1; index < events_.size(); ++index) {
    const std::chrono::duration<double, std::milli> elapsed(
        events_[index - 1].elapsedTime(events_[index]));
    parts.push_back(std::chrono::duration_cast<Nanoseconds>(elapsed));
  }
  return parts;
}

void StepClock::mark() {
  if (!device_.is_cuda()) {
    marks_.push_back(Clock::now());
    return;
  }
  events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);  // with a time stamp
  events_.back().record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
}

}  // namespace rematch
