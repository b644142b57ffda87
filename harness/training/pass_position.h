// The position of a pass over a point, for the reason of one that fails.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "harness/training/training.h"
#include "policies/trace/phase.h"

namespace rematch {

struct PassPosition {
  std::string pass = "building the model";
  std::int64_t step = -1;
  std::optional<Phase> phase;

  // "memory pass, step 0, backward"; before the first step the pass alone.
  std::string describe() const {
    if (step < 0 || !phase) return pass;
    return pass + " pass, step " + std::to_string(step) + ", " + std::string(to_string(*phase));
  }
};

// Keeps `position` up to date, whatever else a pass listens for.
class Watching : public StepListener {
 public:
  explicit Watching(PassPosition& position) : position_(position) {}
  void before_step() override {
    ++position_.step;
    position_.phase = Phase::kForward;
  }
  void after_forward(const at::Tensor&) override { position_.phase = Phase::kBackward; }
  void after_backward() override { position_.phase = Phase::kOptimizer; }

 private:
  PassPosition& position_;
};

}  // namespace rematch
