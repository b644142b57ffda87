// Scaled dot-product attention under a mask, as one op on every device: rematch::masked_attention
// forward, rematch::masked_attention_backward backward. Apart from rematch::attention because it
// runs another kernel where there is a choice: flash attention takes no mask. It draws nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

namespace rematch {

// out_BHSD and logsumexp_BHS of softmax(q k^T / sqrt(D) + mask) v, with q_BHSD and k, v_BHTD.
// `mask` has q's dtype and broadcasts to [B, H, S, T]; it is a constant and gets no gradient.
// float32 or bfloat16, and on the CPU float64. Differentiable once. Throws c10::Error if shapes or
// dtypes do not fit.
std::tuple<at::Tensor, at::Tensor> masked_attention(const at::Tensor& q, const at::Tensor& k,
                                                    const at::Tensor& v, const at::Tensor& mask);

}  // namespace rematch
