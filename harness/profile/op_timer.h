// Times every op that the thread runs below autograd. Only valid on the CPU, where an op is over
// when its call returns.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/engine/record/op_facts.h"
#include "harness/engine/record/opaque_call.h"
#include "harness/profile/step_ops.h"

namespace rematch {

// Appends the time of each op to the list given to set_list(), while an OpModeGuard installs this
// mode. Without a list, ops run but are not timed.
class OpTimer final : public OpMode, public OpaqueCall::Timer {
 public:
  using Duration = Profile::Duration;
  void set_list(std::vector<OpFigure<Duration>>* list) { list_ = list; }

  void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
           std::size_t depth) override {
    if (list_ == nullptr) {
      call_next(op, keys, stack, depth);
      return;
    }
    const Clock::time_point start = Clock::now();
    call_next(op, keys, stack, depth);
    const Clock::time_point end = Clock::now();
    list_->push_back({&facts_of(op).name, end - start});
  }

  void begin_opaque() override { opaque_start_ = Clock::now(); }
  void end_opaque(const std::string& op) override {
    if (list_ != nullptr) list_->push_back({&op, Clock::now() - opaque_start_});
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::vector<OpFigure<Duration>>* list_ = nullptr;
  Clock::time_point opaque_start_;
};

}  // namespace rematch
