// Counts the ops that really ran, by phase, exact name and class. The engine marks recomputed ops,
// and PhaseGuard marks the optimizer's ops.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "harness/engine/interception.h"
#include "policies/trace/phase.h"
#include "reports/record/point.h"

namespace rematch {

struct OpFacts;

// Thread-safe, because backward may run on another thread. Costs one look-up by schema pointer per
// op.
class OpCounter final : public OpObserver {
 public:
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override;

  // Returns the counts so far, as the totals of `counted_steps` steps.
  CountsRecord record(int counted_steps) const;

 private:
  struct Counted {
    const OpFacts* op = nullptr;
    std::array<std::int64_t, kNumPhases> executed{};
  };

  mutable std::mutex mutex_;
  // A schema lives as long as its registration, so its address identifies the op.
  std::unordered_map<const void*, Counted> counted_;
};

}  // namespace rematch
