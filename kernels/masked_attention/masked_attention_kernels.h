// What masked_attention.cpp registers: the op's kernels by device. Private to this folder.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

namespace rematch::kernels::masked {

using Forward = std::tuple<at::Tensor, at::Tensor>;               // out, logsumexp
using Backward = std::tuple<at::Tensor, at::Tensor, at::Tensor>;  // of q, k, v

// Throws c10::Error, naming the shapes, unless the inputs fit each other.
void check_inputs(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& mask);

Forward forward_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const at::Tensor& mask);
Backward backward_cpu(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                      const at::Tensor& v, const at::Tensor& mask, const at::Tensor& out,
                      const at::Tensor& logsumexp);

Forward forward_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& mask);
Backward backward_cuda(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& v, const at::Tensor& mask, const at::Tensor& out,
                       const at::Tensor& logsumexp);

Forward forward_meta(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& mask);
Backward backward_meta(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& v, const at::Tensor& mask, const at::Tensor& out,
                       const at::Tensor& logsumexp);

}  // namespace rematch::kernels::masked
