// LibTorch's memory-efficient attention on CUDA, without dropout: what it wants padded or repeated
// is, and what it hands back is laid out as the other backends do. Needs no CUDA header.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace rematch::kernels {

// Beside q, k and v.
struct EfficientAttention {
  bool causal = false;
  std::optional<double> scale;     // 1 / sqrt(head_dim)
  std::optional<at::Tensor> bias;  // [batch, heads, queries, keys], rows 16 elements apart or more
};

// float32 and half types of head widths that are multiples of 8, where it is enabled.
bool efficient_attention_takes(const at::Tensor& q);

std::tuple<at::Tensor, at::Tensor> efficient_attention(const at::Tensor& q, const at::Tensor& k,
                                                       const at::Tensor& v,
                                                       const EfficientAttention& how);
std::tuple<at::Tensor, at::Tensor, at::Tensor> efficient_attention_backward(
    const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const at::Tensor& out, const at::Tensor& logsumexp, const EfficientAttention& how);

}  // namespace rematch::kernels
