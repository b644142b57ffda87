#include "kernels/attention/attention.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "kernels/attention/attention_kernels.h"

TORCH_LIBRARY_FRAGMENT(rematch, m) {
  m.def("attention(Tensor q, Tensor k, Tensor v, bool causal, float? scale) -> (Tensor, Tensor)");
  m.def(
      "attention_backward(Tensor grad_out, Tensor q, Tensor k, Tensor v, Tensor out, "
      "Tensor logsumexp, bool causal, float? scale) -> (Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(rematch, CPU, m) {
  m.impl("attention", TORCH_FN(rematch::kernels::attention_cpu));
  m.impl("attention_backward", TORCH_FN(rematch::kernels::attention_backward_cpu));
}

#ifdef REMATCH_CUDA
TORCH_LIBRARY_IMPL(rematch, CUDA, m) {
  m.impl("attention", TORCH_FN(rematch::kernels::attention_cuda));
  m.impl("attention_backward", TORCH_FN(rematch::kernels::attention_backward_cuda));
}
#endif

TORCH_LIBRARY_IMPL(rematch, Meta, m) {
  m.impl("attention", TORCH_FN(rematch::kernels::attention_meta));
  m.impl("attention_backward", TORCH_FN(rematch::kernels::attention_backward_meta));
}

TORCH_LIBRARY_IMPL(rematch, Autograd, m) {
  m.impl("attention", TORCH_FN(rematch::kernels::attention_autograd));
  m.impl("attention_backward", TORCH_FN(rematch::kernels::attention_backward_autograd));
}

namespace rematch {

std::tuple<at::Tensor, at::Tensor> attention(const at::Tensor& q, const at::Tensor& k,
                                             const at::Tensor& v, bool causal,
                                             std::optional<double> scale) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("rematch::attention", "")
                             .typed<decltype(kernels::attention_cpu)>();
  return op.call(q, k, v, causal, scale);
}

namespace kernels {

void check_attention_inputs(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  TORCH_CHECK(q.dim() == 4 && k.dim() == 4 && v.dim() == 4,
              "rematch::attention: q, k and v must be [batch, heads, tokens, head_dim], found ",
              q.sizes(), ", ", k.sizes(), ", ", v.sizes());
  TORCH_CHECK(k.sizes() == v.sizes() && q.size(0) == k.size(0) && q.size(3) == k.size(3) &&
                  k.size(1) > 0 && q.size(1) % k.size(1) == 0,
              "rematch::attention: k and v must have one shape, q's batch and head_dim, and a "
              "number of heads that divides q's; found ",
              q.sizes(), ", ", k.sizes(), ", ", v.sizes());
  TORCH_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type(),
              "rematch::attention: q, k and v must have one dtype, found ", q.scalar_type(), ", ",
              k.scalar_type(), ", ", v.scalar_type());
}

}  // namespace kernels
}  // namespace rematch
