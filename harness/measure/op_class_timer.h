// Times every op that really runs, by phase and class, where its call takes as long as the op: on
// the CPU. Recomputed ops are told apart by the engine, the optimizer's by PhaseGuard.
#pragma once

#include <array>
#include <chrono>
#include <map>
#include <mutex>

#include "harness/engine/interception.h"
#include "policies/trace/op_class.h"
#include "policies/trace/phase.h"

namespace rematch {

// Thread-safe: backward may run on another thread than forward.
class OpClassTimer final : public OpObserver {
 public:
  using Times = std::array<std::map<OpClass, std::chrono::nanoseconds>, kNumPhases>;

  void about_to_run(const c10::OperatorHandle& op, Phase phase,
                    const torch::jit::Stack& stack) override;
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override;

  // Everything timed so far. Not while a step runs.
  const Times& times() const { return times_; }

 private:
  std::mutex mutex_;
  Times times_;
};

}  // namespace rematch
