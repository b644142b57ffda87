#include "harness/measure/op_class_timer.h"

#include "harness/measure/phase_guard.h"

namespace rematch {
namespace {

using Clock = std::chrono::steady_clock;

// Kernels' own ops are not observed, so a thread is never inside two.
thread_local Clock::time_point start_of_op;

}  // namespace

void OpClassTimer::about_to_run(const c10::OperatorHandle&, Phase, const torch::jit::Stack&) {
  start_of_op = Clock::now();
}

void OpClassTimer::executed(const c10::OperatorHandle& op, Phase phase, const torch::jit::Stack&) {
  const std::chrono::nanoseconds spent = Clock::now() - start_of_op;
  const auto slot = static_cast<std::size_t>(PhaseGuard::effective(phase));
  const OpClass op_class = op_class_of(op.operator_name().name);
  const std::lock_guard lock(mutex_);
  times_[slot][op_class] += spent;
}

}  // namespace rematch
