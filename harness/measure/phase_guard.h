// Marks the optimizer's phase, which LibTorch cannot tell by itself. Observers ask
// effective_phase(); whoever runs the optimizer holds the guard.
#pragma once

#include <optional>

#include "policies/trace/phase.h"

namespace rematch {

class PhaseGuard {
 public:
  explicit PhaseGuard(Phase phase) : previous_(override_of_thread()) {
    override_of_thread() = phase;
  }
  ~PhaseGuard() { override_of_thread() = previous_; }
  PhaseGuard(const PhaseGuard&) = delete;
  PhaseGuard& operator=(const PhaseGuard&) = delete;

  // The phase to book an op under that was observed in `observed`.
  static Phase effective(Phase observed) {
    return observed == Phase::kForward ? override_of_thread().value_or(observed) : observed;
  }

 private:
  static std::optional<Phase>& override_of_thread() {
    thread_local std::optional<Phase> phase;
    return phase;
  }

  std::optional<Phase> previous_;
};

}  // namespace rematch
