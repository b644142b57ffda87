// Counts what one step executes and how many bytes it holds, at op boundaries.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "harness/engine/interception.h"

namespace rematch::testing {

// Needs counting allocators. Observes while it lives; metadata-only `aten::detach` is not counted
// (torch.utils.checkpoint ignores it too).
class StepMeter final : public OpObserver {
 public:
  StepMeter();
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override;

  // Call between forward and backward.
  void note_after_forward();

  const std::map<std::string, int>& ops() const { return ops_; }  // all phases, by name
  int num_recomputed() const { return num_recomputed_; }          // engine only
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

// Bytes of CPU tensors alive now.
std::int64_t cpu_bytes();

}  // namespace rematch::testing
