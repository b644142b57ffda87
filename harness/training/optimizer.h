// The optimizer of a measured step: AdamW through a fused op, or no optimizer.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "harness/training/optimizer_choice.h"
#include "models/layers/ops.h"

namespace rematch {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Allocates the optimizer's state, which the first step would otherwise allocate.
  virtual void prepare() = 0;
  // The tensors that the optimizer keeps between steps, except the parameters.
  virtual std::vector<at::Tensor> state() const = 0;
  // Runs one update from the parameters' gradients. Parameters without a gradient stay unchanged.
  virtual void step() = 0;
};

// `parameters` are leaves and must outlive the optimizer. bfloat16 parameters get float32
// master weights and moments. The update changes the master weights, and then rounds them into the
// parameters. With fused ops, rematch::adamw_ does so for all parameters in one pass. Otherwise
// LibTorch's fused op updates one parameter after the other, because it needs a float32 copy of the
// gradient. float32 parameters are always updated by LibTorch's op.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerChoice& choice,
                                          std::vector<at::Tensor> parameters,
                                          Ops ops = Ops::kEager);

}  // namespace rematch
