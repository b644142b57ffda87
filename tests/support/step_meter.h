// Counts the ops that one step executes and the bytes that it holds, at op boundaries.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "harness/engine/interception.h"

namespace rematch::testing {

// Counts from its construction to its destruction. Requires the counting allocators. Does not count
// `aten::detach`, which only touches metadata and which torch.utils.checkpoint ignores too.
class StepMeter final : public OpObserver {
 public:
  StepMeter();
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override;

  // Call this between forward and backward.
  void note_after_forward();

  const std::map<std::string, int>& ops() const {
    return ops_;
  }  // executed ops of all phases, by
     // name
  int num_recomputed() const {
    return num_recomputed_;
  }  // number of recomputed ops; 0
     // without the engine
  std::int64_t after_forward_bytes() const { return after_forward_; }
  std::int64_t peak_bytes() const { return peak_; }

 private:
  std::map<std::string, int> ops_;
  int num_recomputed_ = 0;
  std::int64_t baseline_ = 0;
  std::int64_t after_forward_ = 0;
  std::int64_t peak_ = 0;
  OpObserverGuard guard_;
};

// Bytes of the CPU tensors that are alive.
std::int64_t cpu_bytes();

}  // namespace rematch::testing
