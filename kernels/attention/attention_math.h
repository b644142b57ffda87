// Attention from ATen's matmuls and exponentials, inside one op, for what no fused kernel takes:
// any device, dtype, head width and mask. It holds queries x keys scores while it runs.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace rematch::kernels {

// What softmax(q k^T scale + mask) v takes beside its inputs.
struct MathAttention {
  bool causal = false;
  std::optional<double> scale;  // 1 / sqrt(head_dim)
  at::Tensor mask;              // undefined: none; broadcasts to [batch, heads, queries, keys]
};

// out and logsumexp, laid out as the CPU's flash op lays them out. Sums in float32, or double for
// double.
std::tuple<at::Tensor, at::Tensor> math_attention(const at::Tensor& q, const at::Tensor& k,
                                                  const at::Tensor& v, const MathAttention& how);
std::tuple<at::Tensor, at::Tensor, at::Tensor> math_attention_backward(
    const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const at::Tensor& out, const at::Tensor& logsumexp, const MathAttention& how);

}  // namespace rematch::kernels
