#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "kernels/masked_attention/masked_attention_kernels.h"

// Strides are part of the contract: what follows in a model clones or views by them. They are those
// of the CPU kernel.
namespace rematch::kernels::masked {
namespace {

// [batch, tokens, heads, head_dim] in memory.
at::Tensor empty_gradient(const at::Tensor& input) {
  const at::Tensor gradient =
      at::empty({input.size(0), input.size(2), input.size(1), input.size(3)}, input.options());
  return gradient.transpose(1, 2);
}

}  // namespace

Forward forward_meta(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& mask) {
  check_inputs(q, k, v, mask);
  const at::ScalarType statistics = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor out = at::empty_like(q);
  const at::Tensor logsumexp_BSH =
      at::empty({q.size(0), q.size(2), q.size(1)}, q.options().dtype(statistics));
  return {out, logsumexp_BSH.transpose(1, 2)};
}

Backward backward_meta(const at::Tensor& /*grad_out*/, const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& v, const at::Tensor& /*mask*/, const at::Tensor& /*out*/,
                       const at::Tensor& /*logsumexp*/) {
  const at::Tensor grad_q = empty_gradient(q);
  const at::Tensor grad_k = empty_gradient(k);
  const at::Tensor grad_v = empty_gradient(v);
  return {grad_q, grad_k, grad_v};
}

}  // namespace rematch::kernels::masked
