// RMSNorm and LayerNorm. The ops are the same on every device.
#pragma once

#include <ATen/core/Tensor.h>

#include "models/layers/ops.h"
#include "models/preset/parallel.h"

namespace rematch {

// Returns x * rsqrt(mean(x^2, last dim) + eps) * weight. The ops are `pow mean add rsqrt mul mul`.
// If x is bfloat16, the statistics are float32 and the product with the weight is bfloat16, as in
// Llama 3. An undefined weight means no weight. With fused ops, `rematch::rms_norm` replaces these
// ops and rounds the product once.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps,
                    Ops ops = Ops::kEager);

// Like rms_norm(), but the last dimension is split over the ranks of `axis`. x and weight are this
// rank's parts. The squares are summed over all ranks. Fused ops are not used.
at::Tensor split_rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps,
                          const RankAxis& axis);

// Returns (x - mean) / sqrt(var + eps) over the last dimension in float32, by `native_layer_norm`.
// `weight` and `bias` may be undefined. A bfloat16 x gives a float32 result.
at::Tensor layer_norm_float32(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                              double eps);

// Returns layer_norm_float32() in x's dtype. With fused ops, `rematch::layer_norm` replaces its
// ops.
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double eps, Ops ops);

}  // namespace rematch
