// A fused op for AdamW's update of many parameters: rematch::adamw_. A bfloat16 parameter moves 28
// bytes an element: the gradient, and the value, both moments and the parameter.
#pragma once

#include <vector>

#include "kernels/op/kernel.h"

namespace rematch::fused {

// The tensors of each parameter, at the same index in every list. `values` are float32: a master
// copy, or the parameter itself if it is float32. `gradients` are float32 or bfloat16. `moments`
// are float32. `steps` are 0-d float32: the number of this step, from 1. All tensors of a parameter
// are dense and have the same size.
struct AdamWTensors {
  std::vector<at::Tensor> parameters, gradients, values, first_moments, second_moments, steps;
};

struct AdamWSettings {
  double learning_rate, beta1, beta2, epsilon, weight_decay;
};

// Updates values and moments in place, by the formula of torch.optim.AdamW. Rounds each new value
// into its bfloat16 parameter in the same pass. Call it under at::NoGradGuard. Throws c10::Error if
// shapes, dtypes or devices do not fit.
void adamw(const AdamWTensors& tensors, const AdamWSettings& settings);

}  // namespace rematch::fused

namespace rematch::kernels {

// One parameter. `parameter` is null if the value is the parameter.
struct AdamWTensor {
  std::int64_t size;
  const void* gradient;
  float* value;
  float* first_moment;
  float* second_moment;
  void* parameter;  // bfloat16
  const float* step;
};

// A CUDA kernel takes the struct by value, so it must be smaller than 4 KiB.
inline constexpr int kMaxAdamWTensors = 64;

// The update of `num` parameters, whose gradients have one type.
struct AdamW {
  Element gradient_element;
  int num;
  float learning_rate, beta1, beta2, epsilon, weight_decay;
  AdamWTensor tensors[kMaxAdamWTensors];
};

static_assert(sizeof(AdamW) <= 4096);

REMATCH_KERNELS(AdamW)

}  // namespace rematch::kernels
