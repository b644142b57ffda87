// What attention.cpp registers: the op's kernels by device. Private to the attention ops.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace rematch::kernels {

using Forward = std::tuple<at::Tensor, at::Tensor>;               // out, logsumexp
using Backward = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // of q, k, v

// Throws c10::Error, naming the shapes, unless q, k and v fit each other.
void check_attention_inputs(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v);

Forward attention_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal,
                      std::optional<double> scale);
Backward attention_backward_cpu(const at::Tensor& grad_out, const at::Tensor& q,
                                const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
                                const at::Tensor& logsumexp, bool causal,
                                std::optional<double> scale);

Forward attention_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal,
                       std::optional<double> scale);
Backward attention_backward_cuda(const at::Tensor& grad_out, const at::Tensor& q,
                                 const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
                                 const at::Tensor& logsumexp, bool causal,
                                 std::optional<double> scale);

Forward attention_meta(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal,
                       std::optional<double> scale);
Backward attention_backward_meta(const at::Tensor& grad_out, const at::Tensor& q,
                                 const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
                                 const at::Tensor& logsumexp, bool causal,
                                 std::optional<double> scale);

}  // namespace rematch::kernels
