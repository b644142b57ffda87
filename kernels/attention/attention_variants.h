// The implementations of softmax(q k^T scale + mask) v. The ops choose one implementation. Private
// to this folder.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace rematch::kernels {

using AttentionForward = std::tuple<at::Tensor, at::Tensor>;  // the output and its logsumexp
using AttentionBackward = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // gradients of q, k, v

// The dropout ratio that every kernel takes. It is 0, because a model's dropout is a separate op.
inline constexpr double kDropoutOff = 0.0;

struct Attention {
  bool causal = false;
  std::optional<double> scale;  // absent: 1 / sqrt(head_dim)
  at::Tensor mask;              // broadcasts to [batch, heads, queries, keys]; undefined: no mask
};

// Runs the implementation for the tensors' device. On meta allocates the results and nothing else.
// Requires inputs that the attention ops accept.
AttentionForward attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const Attention& how);
AttentionBackward attend_backward(const at::Tensor& grad_out, const at::Tensor& q,
                                  const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
                                  const at::Tensor& logsumexp, const Attention& how);

// Returns uninitialised tensors with the layouts that the CPU's kernels use: a logsumexp [batch,
// heads, tokens] for q, and a gradient of `input`. In memory, tokens come before heads.
at::Tensor empty_logsumexp(const at::Tensor& q);
at::Tensor empty_gradient(const at::Tensor& input);

// Throws c10::Error, which names the op, if shapes or dtypes do not fit.
void check_attention_inputs(const char* op, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v);

// Composes attention from ATen's matmuls and exponentials inside one op, for inputs that no fused
// kernel accepts. Temporarily allocates a score for each pair of a query and a key. Results have
// the layout of the CPU's flash op. Sums in float32, or in float64 for float64 inputs.
AttentionForward math_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const Attention& how);
AttentionBackward math_attention_backward(const at::Tensor& grad_out, const at::Tensor& q,
                                          const at::Tensor& k, const at::Tensor& v,
                                          const at::Tensor& out, const at::Tensor& logsumexp,
                                          const Attention& how);

// Runs LibTorch's CUDA kernels: flash, cuDNN, memory-efficient or composed. Chooses the first of
// these that is enabled (backend.h) and supports the mask, dtype and head width. Needs no CUDA
// header.
AttentionForward attention_on_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   const Attention& how);
AttentionBackward attention_on_cuda_backward(const at::Tensor& grad_out, const at::Tensor& q,
                                             const at::Tensor& k, const at::Tensor& v,
                                             const at::Tensor& out, const at::Tensor& logsumexp,
                                             const Attention& how);

}  // namespace rematch::kernels
