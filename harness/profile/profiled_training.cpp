#include "harness/profile/profiled_training.h"

#include "harness/measure/device_clock.h"
#include "harness/run/warm_up.h"
#include "harness/sweep/interrupt.h"

namespace rematch {

void ProfiledTraining::warm_up() {
  StepListener nobody;
  for (int i = 0; i < kWarmUpSteps; ++i) step(nobody);
}

void ProfiledTraining::step(StepListener& listener) {
  if (const auto signal = InterruptGuard::signal()) {
    throw Interrupted(*signal, "the ops were not all timed, so there are no times to go by");
  }
  training_.step(next_step_++, listener);
}

void PhaseClock::before_step() { start_ = now_on(device_); }

void PhaseClock::after_forward(const at::Tensor&) { forward_ = now_on(device_); }

void PhaseClock::after_backward() { backward_ = now_on(device_); }

void PhaseClock::after_optimizer() {
  const std::chrono::steady_clock::time_point end = now_on(device_);
  steps_.forward.emplace_back(forward_ - start_);
  steps_.backward.emplace_back(backward_ - forward_);
  steps_.optimizer.emplace_back(end - backward_);
}

}  // namespace rematch
