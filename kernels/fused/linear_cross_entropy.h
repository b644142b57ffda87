// Fused ops for a linear head followed by cross-entropy, each with its backward. Both split the
// vocabulary into chunks. The ops draw no random numbers, and save their inputs and one logsumexp
// per token.
// - rematch::linear_cross_entropy never holds the logits of all classes. Backward computes them
//   again.
// - rematch::linear_cross_entropy_with_logits also saves the logits, so backward needs one matmul
//   less.
#pragma once

#include "kernels/op/kernel.h"

namespace rematch::fused {

enum class Logits : std::uint8_t { kRecomputed, kKept };

// Returns the mean over tokens of logsumexp(x W^T) - (x W^T)[target]. x_TD and weight_VD have one
// dtype: float32, bfloat16 or float64. target_T is int64 in [0, V). The loss is a float32 scalar,
// or a float64 scalar for float64 inputs. Logits have x's dtype, and all later values have the
// loss's dtype. Second derivatives are not supported. Throws c10::Error if shapes or dtypes do not
// fit, and on the CPU if a target is out of range. On CUDA a target out of range makes the loss
// NaN.
// With Logits::kKept the logits are saved for backward. Loss and gradients have the same bits.
at::Tensor linear_cross_entropy(const at::Tensor& x_TD, const at::Tensor& weight_VD,
                                const at::Tensor& target_T, Logits logits = Logits::kRecomputed);

// Returns kKept if the logits [T, V] are small: at most a quarter of the weight's elements, or one
// chunk on a CPU. The matmul that computes such logits again costs more time than their memory is
// worth.
Logits logits_for(const at::Tensor& x_TD, const at::Tensor& weight_VD);

}  // namespace rematch::fused

namespace rematch::kernels {

// Dense logits [rows, width] of the classes [first, first + width). For each row, `maximum` is the
// largest logit of all chunks so far, and `sum` is the sum of exp(logit - maximum) over them.
// `target_logit` is set when the chunk of the row's target is processed. The kernel updates
// `maximum`, `sum` and `target_logit`. All three have the type in which sums are computed.
struct LogitChunk {
  Element element;
  std::int64_t rows, width, first;
  const void* logits;
  const std::int64_t* target;
  void* maximum;
  void* sum;
  void* target_logit;
};

// Replaces each logit by its gradient, (exp(logit - logsumexp) - [class is target]) * grad_loss /
// rows.
struct LogitChunkBackward {
  Element element;
  std::int64_t rows, width, first;
  void* logits;
  const std::int64_t* target;
  const void* logsumexp;
  const void* grad_loss;  // the gradient of the loss, a single number
  // If not null, the logits are read from here, and only their gradients are written to `logits`.
  const void* kept = nullptr;
};

REMATCH_KERNELS(LogitChunk)
REMATCH_KERNELS(LogitChunkBackward)

}  // namespace rematch::kernels
