// A step whose phases a clock times. No other observer may be active in such a step.
#pragma once

#include <functional>
#include <optional>

#include "harness/measure/clocks.h"
#include "harness/training/training.h"

namespace rematch {

class ClockedStep : public StepListener {
 public:
  explicit ClockedStep(at::Device device) : clock_(device) {}

  Batch batch(const std::function<Batch()>& make) override {
    if (!clock_.is_running()) return make();
    clock_.part_done(Phase::kBackward);
    Batch batch = make();
    clock_.part_done(std::nullopt);
    return batch;
  }
  void before_step() override { clock_.begin(); }
  void after_forward(const at::Tensor&) override { clock_.part_done(Phase::kForward); }
  void after_backward() override { clock_.part_done(Phase::kBackward); }
  void after_optimizer() override { clock_.end(); }

  // The clock holds the times of the last step that has ended.
  const StepClock& clock() const { return clock_; }

 private:
  StepClock clock_;
};

}  // namespace rematch
