// A linear head and the cross-entropy of its logits as one op on every device, over chunks of the
// vocabulary: the logits of all classes never exist at once. rematch::linear_cross_entropy forward,
// rematch::linear_cross_entropy_backward backward, which makes the logits again. It draws nothing,
// and saves its inputs and a logsumexp a token.
#pragma once

#include "kernels/op/kernel.h"

namespace rematch::fused {

// Mean over tokens of logsumexp(x W^T) - (x W^T)[target]: x_TD and weight_VD of one dtype, float32,
// bfloat16 or float64, target_T int64 in [0, V). The loss is a scalar of float32, or float64 for
// float64. Logits are of x's dtype, everything after them of the loss's. Differentiable once.
// Throws c10::Error if shapes or dtypes do not fit, and on the CPU if a target is out of range; on
// CUDA such a target makes the loss NaN.
at::Tensor linear_cross_entropy(const at::Tensor& x_TD, const at::Tensor& weight_VD,
                                const at::Tensor& target_T);

}  // namespace rematch::fused

namespace rematch::kernels {

// Dense logits [rows, width] of classes first, first + 1, ... `maximum`, `sum` and `target_logit`
// hold, a row, the largest logit up to this chunk, the sum of exp(logit - maximum) and the target's
// logit once its chunk was seen: in sums' type, updated.
struct LogitChunk {
  Element element;
  std::int64_t rows, width, first;
  const void* logits;
  const std::int64_t* target;
  void* maximum;
  void* sum;
  void* target_logit;
};

// Turns logits into their gradient, (exp(logit - logsumexp) - [class is target]) * grad_loss /
// rows.
struct LogitChunkBackward {
  Element element;
  std::int64_t rows, width, first;
  void* logits;
  const std::int64_t* target;
  const void* logsumexp;
  const void* grad_loss;  // one number
};

REMATCH_KERNELS(LogitChunk)
REMATCH_KERNELS(LogitChunkBackward)

}  // namespace rematch::kernels
