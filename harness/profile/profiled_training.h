// The steps that a profile is measured in, the same on every device: one after the other, ended
// between two of them by an interrupt, and a clock over the phases of those that nobody watches.
#pragma once

#include <cstdint>

#include "harness/measure/clocks.h"
#include "harness/progress/progress.h"
#include "harness/training/training.h"
#include "policies/trace/measured_profile.h"

namespace rematch {

class ProfiledTraining {
 public:
  // `num_steps` after warm-up, for the progress that is shown.
  ProfiledTraining(const TrainingSettings& settings, std::int64_t num_steps);

  // kWarmUpSteps of harness/training/training.h.
  void warm_up();
  // The step that is next. Throws Interrupted, before it, if an InterruptGuard saw a signal.
  void step(StepListener& listener);

 private:
  Training training_;
  StepProgress progress_;
  std::int64_t next_step_ = 0;
};

// Appends what the phases of each step take.
class PhaseClock final : public StepListener {
 public:
  // `steps` must outlive it.
  PhaseClock(at::Device device, TimedSteps& steps) : clock_(device), steps_(steps) {}
  void before_step() override;
  void after_forward(const at::Tensor& loss) override;
  void after_backward() override;
  void after_optimizer() override;

 private:
  StepClock clock_;
  TimedSteps& steps_;
};

}  // namespace rematch
