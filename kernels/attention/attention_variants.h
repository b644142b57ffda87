// The ways to run softmax(q k^T scale + mask) v, of which the ops choose one. Private to this
// folder.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace rematch::kernels {

using AttentionForward = std::tuple<at::Tensor, at::Tensor>;               // out, logsumexp
using AttentionBackward = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // of q, k, v

// Each kernel asks for one; where a model has dropout, it is an op of its own.
inline constexpr double kDropoutOff = 0.0;

struct Attention {
  bool causal = false;
  std::optional<double> scale;  // 1 / sqrt(head_dim)
  at::Tensor mask;              // undefined: none; broadcasts to [batch, heads, queries, keys]
};

// From ATen's matmuls and exponentials, inside one op, for what no fused kernel takes: any device,
// dtype, head width and mask. Holds queries x keys scores while it runs. Lays its results out as
// the CPU's flash op does. Sums in float32, or double for double.
AttentionForward math_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const Attention& how);
AttentionBackward math_attention_backward(const at::Tensor& grad_out, const at::Tensor& q,
                                          const at::Tensor& k, const at::Tensor& v,
                                          const at::Tensor& out, const at::Tensor& logsumexp,
                                          const Attention& how);

// CUDA kernels by way of LibTorch's own: flash, cuDNN, memory-efficient or composed, the first in
// this order that takes mask, dtype and head width and is enabled (backend.h). Needs no CUDA
// header.
AttentionForward attention_on_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   const Attention& how);
AttentionBackward attention_on_cuda_backward(const at::Tensor& grad_out, const at::Tensor& q,
                                             const at::Tensor& k, const at::Tensor& v,
                                             const at::Tensor& out, const at::Tensor& logsumexp,
                                             const Attention& how);

}  // namespace rematch::kernels
