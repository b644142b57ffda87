// The optimizer of a measured step: AdamW through LibTorch's fused op, or no optimizer.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "harness/training/optimizer_choice.h"

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
// parameters.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerChoice& choice,
                                          std::vector<at::Tensor> parameters);

}  // namespace rematch
