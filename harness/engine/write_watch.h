// Watches a step for writes to tensors that earlier regions have read.
#pragma once

#include <memory>
#include <vector>

#include "harness/engine/interception.h"

namespace rematch {

class Frame;

// Note [Watching writes]
// Recompute of a region reads tensors from outside. Later in forward, another region or the program
// may overwrite such a tensor. Autograd permits this if it did not save the tensor. While this mode
// is installed, the closed regions copy such a tensor before the write. The mode costs time for
// every op of the step, so it is installed only if the traced step made such writes
// (Plan::watches_writes). Without the mode, recompute rejects the changed tensor.
class WriteWatch final : public OpMode {
 public:
  // Adds a closed region. The tensors that it has read are copied before they are overwritten.
  void add(const std::shared_ptr<Frame>& closed) { frames_.push_back(closed); }

  void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
           std::size_t depth) override;

 private:
  void tell_regions(const at::Tensor& written);

  std::vector<std::weak_ptr<Frame>> frames_;
};

}  // namespace rematch
