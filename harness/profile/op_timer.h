// Times every op that the thread runs below autograd. Only valid on the CPU, where an op is over
// when its call returns. This class does not depend on steps or traces.
#pragma once

#include <chrono>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/engine/record/op_facts.h"
#include "harness/profile/step_ops.h"

namespace rematch {

// Appends ops to the list that is set, while an OpModeGuard installs this mode. Without a list, ops
// run but are not timed.
class OpTimer final : public OpMode {
 public:
  using Duration = Profile::Duration;
  void set_list(std::vector<OpFigure<Duration>>* list) { list_ = list; }

  void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
           std::size_t depth) override {
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

 private:
  std::vector<OpFigure<Duration>>* list_ = nullptr;
};

}  // namespace rematch
