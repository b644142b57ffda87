#include "kernels/masked_attention/masked_attention.h"

#include <ATen/ExpandUtils.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include <vector>

#include "kernels/masked_attention/masked_attention_kernels.h"
#include "kernels/op/autograd.h"

namespace rematch::kernels::masked {

void check_inputs(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                  const at::Tensor& mask) {
  TORCH_CHECK(q.dim() == 4 && k.dim() == 4 && v.dim() == 4 && mask.dim() == 4,
              "rematch::masked_attention: q, k, v and mask must have 4 dimensions, found ",
              q.sizes(), ", ", k.sizes(), ", ", v.sizes(), ", ", mask.sizes());
  TORCH_CHECK(k.sizes() == v.sizes() && q.size(0) == k.size(0) && q.size(1) == k.size(1) &&
                  q.size(3) == k.size(3),
              "rematch::masked_attention: k and v must have one shape, and q's batch, heads and "
              "head_dim; found ",
              q.sizes(), ", ", k.sizes(), ", ", v.sizes());
  TORCH_CHECK(
      at::is_expandable_to(mask.sizes(), {q.size(0), q.size(1), q.size(2), k.size(2)}),
      "rematch::masked_attention: the mask must broadcast to [batch, heads, queries, keys], found ",
      mask.sizes(), " for q ", q.sizes(), " and k ", k.sizes());
  TORCH_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type() &&
                  q.scalar_type() == mask.scalar_type(),
              "rematch::masked_attention: q, k, v and mask must have one dtype, found ",
              q.scalar_type(), ", ", k.scalar_type(), ", ", v.scalar_type(), ", ",
              mask.scalar_type());
  TORCH_CHECK(!mask.requires_grad(),
              "rematch::masked_attention: the mask gets no gradient; give it detached");
}

namespace {

Forward forward_autograd(c10::DispatchKeySet keys, const at::Tensor& q, const at::Tensor& k,
                         const at::Tensor& v, const at::Tensor& mask) {
  static const auto op = handle<decltype(forward_cpu)>("rematch::masked_attention");
  static const auto backward = handle<decltype(backward_cpu)>("rematch::masked_attention_backward");
  const auto formula = [](const Saved& saved) -> std::vector<at::Tensor> {
    const auto [grad_q, grad_k, grad_v] =
        backward.call(saved.grad, saved.kept[0], saved.kept[1], saved.kept[2], saved.kept[3],
                      saved.outputs[0], saved.outputs[1]);
    return {grad_q, grad_k, grad_v};
  };
  const std::vector<at::Tensor> outputs =
      differentiate({"RematchMaskedAttentionBackward",
                     {q, k, v},
                     {q, k, v, mask},
                     formula,
                     /*reads_first_output=*/true},
                    [&]() -> std::vector<at::Tensor> {
                      const auto [out, logsumexp] =
                          op.redispatch(keys & c10::after_autograd_keyset, q, k, v, mask);
                      return {out, logsumexp};
                    });
  return {outputs[0], outputs[1]};
}

TORCH_LIBRARY_FRAGMENT(rematch, m) {
  m.def("masked_attention(Tensor q, Tensor k, Tensor v, Tensor mask) -> (Tensor, Tensor)");
  m.def(
      "masked_attention_backward(Tensor grad_out, Tensor q, Tensor k, Tensor v, Tensor mask, "
      "Tensor out, Tensor logsumexp) -> (Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(rematch, CPU, m) {
  m.impl("masked_attention", TORCH_FN(forward_cpu));
  m.impl("masked_attention_backward", TORCH_FN(backward_cpu));
}

TORCH_LIBRARY_IMPL(rematch, CUDA, m) {
  m.impl("masked_attention", TORCH_FN(forward_cuda));
  m.impl("masked_attention_backward", TORCH_FN(backward_cuda));
}

TORCH_LIBRARY_IMPL(rematch, Meta, m) {
  m.impl("masked_attention", TORCH_FN(forward_meta));
  m.impl("masked_attention_backward", TORCH_FN(backward_meta));
}

TORCH_LIBRARY_IMPL(rematch, Autograd, m) {
  m.impl("masked_attention", TORCH_FN(forward_autograd));
  m.impl("masked_attention_backward", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace
}  // namespace rematch::kernels::masked

namespace rematch {

std::tuple<at::Tensor, at::Tensor> masked_attention(const at::Tensor& q, const at::Tensor& k,
                                                    const at::Tensor& v, const at::Tensor& mask) {
  static const auto op =
      kernels::handle<decltype(kernels::masked::forward_cpu)>("rematch::masked_attention");
  return op.call(q, k, v, mask);
}

}  // namespace rematch
