// Scaled dot-product attention as one op on every device: rematch::attention and, with a mask,
// rematch::masked_attention. Neither op has dropout or draws random numbers. Attention with a mask
// is a separate op because flash attention takes no mask.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace rematch {

// Returns out_BHSD and logsumexp_BHS of softmax(q k^T * scale) v, for q_BHSD and k, v_BGTD. G key
// heads serve H = n * G query heads without expansion. Takes float32, bfloat16 or float64. An empty
// `scale` means 1 / sqrt(D). Differentiable once. Throws c10::Error if shapes or dtypes do not fit.
std::tuple<at::Tensor, at::Tensor> attention(const at::Tensor& q, const at::Tensor& k,
                                             const at::Tensor& v, bool causal,
                                             std::optional<double> scale = std::nullopt);

// Returns out_BHSD and logsumexp_BHS of softmax(q k^T / sqrt(D) + mask) v, for q_BHSD and k,
// v_BHTD. `mask` has q's dtype and broadcasts to [B, H, S, T]; it is a constant and gets no
// gradient. Takes float32 or bfloat16, and on the CPU float64. Differentiable once. Throws
// c10::Error if shapes or dtypes do not fit.
std::tuple<at::Tensor, at::Tensor> masked_attention(const at::Tensor& q, const at::Tensor& k,
                                                    const at::Tensor& v, const at::Tensor& mask);

}  // namespace rematch
