// Times a step as a whole and in parts. The device is waited for before the step and after it, and
// never inside: a GPU's launches run ahead of it, as they do where nobody measures. So the parts of
// a step on a GPU are from events in its stream.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <chrono>
#include <vector>

namespace rematch {

class StepClock {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  explicit StepClock(c10::Device device) : device_(device) {}

  void begin();      // waits, and forgets the step before
  void part_done();  // launched, not run
  void end();        // the last part is done; waits

  // From begin() to end().
  Nanoseconds whole() const { return whole_; }
  // As many as part_done() and end() were called. Their sum is the whole but for what begin() and
  // end() take.
  std::vector<Nanoseconds> parts() const;

 private:
  using Clock = std::chrono::steady_clock;
  void mark();

  c10::Device device_;
  Clock::time_point start_;
  Nanoseconds whole_{};
  std::vector<Clock::time_point> marks_;  // where calls are over when they return
  std::vector<c10::Event> events_;        // elsewhere
};

}  // namespace rematch
