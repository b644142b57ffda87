#include "kernels/attention/attention.h"

#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include <vector>

#include "kernels/attention/attention_kernels.h"
#include "kernels/op/autograd.h"

namespace rematch::kernels {

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

namespace {

Forward attention_autograd(c10::DispatchKeySet keys, const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& v, bool causal, std::optional<double> scale) {
  static const auto op = handle<decltype(attention_cpu)>("rematch::attention");
  static const auto backward =
      handle<decltype(attention_backward_cpu)>("rematch::attention_backward");
  const auto formula = [causal, scale](const Saved& saved) -> std::vector<at::Tensor> {
    const auto [grad_q, grad_k, grad_v] =
        backward.call(saved.grad, saved.kept[0], saved.kept[1], saved.kept[2], saved.outputs[0],
                      saved.outputs[1], causal, scale);
    return {grad_q, grad_k, grad_v};
  };
  const std::vector<at::Tensor> outputs = differentiate(
      {"RematchAttentionBackward", {q, k, v}, {q, k, v}, formula, /*reads_first_output=*/true},
      [&]() -> std::vector<at::Tensor> {
        const auto [out, logsumexp] =
            op.redispatch(keys & c10::after_autograd_keyset, q, k, v, causal, scale);
        return {out, logsumexp};
      });
  return {outputs[0], outputs[1]};
}

TORCH_LIBRARY_FRAGMENT(rematch, m) {
  m.def("attention(Tensor q, Tensor k, Tensor v, bool causal, float? scale) -> (Tensor, Tensor)");
  m.def(
      "attention_backward(Tensor grad_out, Tensor q, Tensor k, Tensor v, Tensor out, "
      "Tensor logsumexp, bool causal, float? scale) -> (Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(rematch, CPU, m) {
  m.impl("attention", TORCH_FN(attention_cpu));
  m.impl("attention_backward", TORCH_FN(attention_backward_cpu));
}

TORCH_LIBRARY_IMPL(rematch, CUDA, m) {
  m.impl("attention", TORCH_FN(attention_cuda));
  m.impl("attention_backward", TORCH_FN(attention_backward_cuda));
}

TORCH_LIBRARY_IMPL(rematch, Meta, m) {
  m.impl("attention", TORCH_FN(attention_meta));
  m.impl("attention_backward", TORCH_FN(attention_backward_meta));
}

TORCH_LIBRARY_IMPL(rematch, Autograd, m) {
  m.impl("attention", TORCH_FN(attention_autograd));
  m.impl("attention_backward", torch::autograd::autogradNotImplementedFallback());
}

}  // namespace
}  // namespace rematch::kernels

namespace rematch {

std::tuple<at::Tensor, at::Tensor> attention(const at::Tensor& q, const at::Tensor& k,
                                             const at::Tensor& v, bool causal,
                                             std::optional<double> scale) {
  static const auto op = kernels::handle<decltype(kernels::attention_cpu)>("rematch::attention");
  return op.call(q, k, v, causal, scale);
}

}  // namespace rematch
