// Scaled dot-product attention as one op on every device: rematch::attention forward,
// rematch::attention_backward backward. No mask, no dropout: it draws nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace rematch {

// out_BHSD and logsumexp_BHS of softmax(q k^T * scale) v, with q_BHSD, k_BGTD, v_BGTD: G key heads
// serve H = n * G query heads unexpanded. float32, bfloat16 or float64. `scale` empty: 1 / sqrt(D).
// Differentiable once. Throws c10::Error if shapes or dtypes do not fit.
std::tuple<at::Tensor, at::Tensor> attention(const at::Tensor& q, const at::Tensor& k,
                                             const at::Tensor& v, bool causal,
                                             std::optional<double> scale = std::nullopt);

}  // namespace rematch
