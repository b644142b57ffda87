// The first oracle: a plain closure checkpoint, after torch.utils.checkpoint's non-reentrant form
// (PyTorch 2.11.0, torch/utils/checkpoint.py). It re-runs the user's closure in backward, rebuilds
// its graph, answers saved ops from a store, and stops early by an exception. It shares nothing
// with the engine but the interception points.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <vector>

namespace rematch::testing {

// What checkpoints by closure got wrong in other systems, planted to see that the gate catches it.
// A recording engine cannot: it repeats no side effect and runs below autocast.
enum class ClosureFault { kNoFault, kAutocastLost, kBufferTwice, kGradientsDropped };

struct ClosurePolicy {
  // Whether the `index`-th op of the region is kept. Mutating ops and views never are.
  std::function<bool(const c10::OperatorHandle& op, int index)> save = [](const auto&, int) {
    return false;
  };
  bool early_stop = true;
  bool preserve_generator = true;  // one generator state a region, 5,056 bytes on the CPU
  // Written to by the closure; recompute finds them as forward did and leaves them as they are.
  std::vector<at::Tensor> buffers = {};
  std::vector<at::Tensor> parameters = {};  // for kGradientsDropped alone
  ClosureFault fault = ClosureFault::kNoFault;
};

using Region = std::function<at::Tensor(const at::Tensor&)>;

// region(input), checkpointed. Runs plainly without grad mode.
at::Tensor closure_checkpoint(const Region& region, const at::Tensor& input,
                              const ClosurePolicy& policy);

}  // namespace rematch::testing
