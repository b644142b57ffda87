#include "harness/profile/op_timer.h"

#include "harness/engine/op_facts.h"

namespace rematch {

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
