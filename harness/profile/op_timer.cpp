#include "harness/profile/op_timer.h"

#include "harness/engine/record/op_facts.h"
#include "harness/profile/step_ops.h"

namespace rematch {

std::vector<std::chrono::nanoseconds> times_of(const std::vector<TimedOp>& timed,
                                               const std::vector<const std::string*>& traced,
                                               const std::string& phase,
                                               const std::string& device) {
  std::vector<const std::string*> ran;
  std::vector<std::chrono::nanoseconds> times;
  for (const TimedOp& op : timed) {
    ran.push_back(op.name);
    times.push_back(op.time);
  }
  require_same_ops(ran, traced, phase, device);
  return times;
}

void OpTimer::run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
                  std::size_t depth) {
  if (list_ == nullptr) {
    call_next(op, keys, stack, depth);
    return;
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  call_next(op, keys, stack, depth);
  const Clock::time_point end = Clock::now();
  list_->push_back({&facts_of(op).name, end - start});
}

}  // namespace rematch
