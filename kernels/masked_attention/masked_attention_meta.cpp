// A mask changes nothing that attention's kernels on meta see.
#include "kernels/attention/attention_kernels.h"
#include "kernels/masked_attention/masked_attention_kernels.h"

namespace rematch::kernels::masked {

Forward forward_meta(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& mask) {
  check_inputs(q, k, v, mask);
  return attention_meta(q, k, v, /*causal=*/false, /*scale=*/std::nullopt);
}

Backward backward_meta(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& v, const at::Tensor& /*mask*/, const at::Tensor& out,
                       const at::Tensor& logsumexp) {
  return attention_backward_meta(grad_out, q, k, v, out, logsumexp, /*causal=*/false,
                                 /*scale=*/std::nullopt);
}

}  // namespace rematch::kernels::masked
