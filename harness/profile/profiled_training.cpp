#include "harness/profile/profiled_training.h"

#include "harness/sweep/interrupt.h"
#include "harness/training/training.h"

namespace rematch {

ProfiledTraining::ProfiledTraining(const TrainingSettings& settings, std::int64_t num_steps)
    : training_(settings), progress_("profile", kWarmUpSteps + num_steps) {}

void ProfiledTraining::warm_up() {
  StepListener nobody;
  for (int i = 0; i < kWarmUpSteps; ++i) step(nobody);
}

void ProfiledTraining::step(StepListener& listener) {
  if (const auto signal = InterruptGuard::signal()) {
    throw Interrupted(*signal, "the ops were not all timed, so there are no times to go by");
  }
  training_.step(next_step_++, listener);
  progress_.step_done();
}

void PhaseClock::before_step() { clock_.begin(); }

void PhaseClock::after_forward(const at::Tensor&) { clock_.part_done(); }

void PhaseClock::after_backward() { clock_.part_done(); }

void PhaseClock::after_optimizer() {
  clock_.end();
  const std::vector<std::chrono::nanoseconds> parts = clock_.parts();
  steps_.forward.emplace_back(parts.at(0));
  steps_.backward.emplace_back(parts.at(1));
  steps_.optimizer.emplace_back(parts.at(2));
}

}  // namespace rematch
