// An independent implementation of checkpointing, with which tests compare the engine. It is
// modelled on torch.utils.checkpoint's non-reentrant form (PyTorch 2.11.0,
// torch/utils/checkpoint.py). In backward, it calls the user's function again and rebuilds the
// graph. It shares only the interception of ops with the engine.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <vector>

namespace rematch::testing {

// Known faults of checkpointing in other systems. Tests plant a fault and check that it is
// detected.
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
  // Buffers that the region writes to. Recompute starts from the contents that forward read, and
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
