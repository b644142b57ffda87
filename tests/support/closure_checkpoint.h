// The closure oracle: an independent implementation of checkpointing, with which tests compare the
// engine. It is modelled on torch.utils.checkpoint's non-reentrant form (PyTorch 2.11.0,
// torch/utils/checkpoint.py). In backward, it calls the user's closure again and rebuilds the
// graph. It takes the outputs of saved ops from a store, and stops early by throwing an exception.
// It shares only the interception points with the engine.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <vector>

namespace rematch::testing {

// Known faults of closure checkpoints in other systems, planted to test that the comparison finds
// them. A recording engine cannot have these faults: it repeats no side effect and runs below
// autocast.
enum class ClosureFault { kNoFault, kAutocastLost, kBufferTwice, kGradientsDropped };

struct ClosurePolicy {
  // Whether to keep the output of the `index`-th op of the region. Mutating ops and views are never
  // kept.
  std::function<bool(const c10::OperatorHandle& op, int index)> save = [](const auto&, int) {
    return false;
  };
  bool early_stop = true;
  bool preserve_generator =
      true;  // the generator's state is saved once per region; it takes 5,056 bytes on the CPU
  // The closure writes to these buffers. Recompute starts from the contents that forward saw, and
  // restores the current contents afterwards.
  std::vector<at::Tensor> buffers = {};
  std::vector<at::Tensor> parameters = {};  // used only for kGradientsDropped
  ClosureFault fault = ClosureFault::kNoFault;
};

using Region = std::function<at::Tensor(const at::Tensor&)>;

// Returns region(input), checkpointed. Without grad mode, runs the region without checkpointing.
at::Tensor closure_checkpoint(const Region& region, const at::Tensor& input,
                              const ClosurePolicy& policy);

}  // namespace rematch::testing
