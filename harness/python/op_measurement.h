// Times of a traced step's ops, measured on the CPU while Python runs the steps: every op in its
// place, and whole steps that nobody watches. Shows its progress once it takes longer than two
// seconds.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "harness/engine/interception.h"
#include "harness/profile/op_timer.h"
#include "harness/profile/step_ops.h"
#include "harness/progress/progress.h"
#include "policies/trace/measured_profile.h"
#include "policies/trace/trace.h"

namespace rematch {

class OpMeasurement {
 public:
  // `num_steps` of both kinds together, for the progress.
  OpMeasurement(Trace trace, int num_steps);

  // A watched step, on the thread that calls, which is the one that runs its ops: forward from
  // here, backward from the second call, to the third. Throws std::runtime_error, with the op
  // named, unless the step ran the trace's ops, and std::logic_error out of order.
  void begin_forward();
  void begin_backward();
  void end_step();
  // A step that nobody watched.
  void note_step(std::chrono::nanoseconds forward, std::chrono::nanoseconds backward);

  const Trace& trace() const { return trace_; }
  // Throws std::invalid_argument unless there was a step of each kind.
  Profile profile() const { return measured_profile(trace_, "cpu", steps_); }

 private:
  Trace trace_;
  TimedSteps steps_;
  StepProgress progress_;
  OpTimer timer_;
  StepFigures<Profile::Duration> timed_;
  std::optional<OpModeGuard> watch_;
};

}  // namespace rematch
