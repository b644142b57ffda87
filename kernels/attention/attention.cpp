#include "kernels/attention/attention.h"

#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "kernels/attention/attention_variants.h"
#include "kernels/op/op.h"

namespace rematch::kernels {
namespace {

using Forward = AttentionForward;
using Backward = AttentionBackward;

std::optional<at::Tensor> optional_mask(const Attention& how) {
  return how.mask.defined() ? std::optional(how.mask) : std::nullopt;
}

// Returns whether the CPU runs LibTorch's flash attention. Otherwise the CPU runs composed
// attention. LibTorch has a separate flag for attention with a mask. On the CPU,
// use_attention_backend sets both flags to the same value.
bool has_flash_on_cpu(const Attention& how) {
  const at::Context& context = at::globalContext();
  return how.mask.defined() ? context.userEnabledMemEfficientSDP() : context.userEnabledFlashSDP();
}

Forward on_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
               const Attention& how) {
  if (!has_flash_on_cpu(how)) return math_attention(q, k, v, how);
  return at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, kDropoutOff, how.causal,
                                                         optional_mask(how), how.scale);
}

Backward on_cpu_backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                         const at::Tensor& v, const at::Tensor& out, const at::Tensor& logsumexp,
                         const Attention& how) {
  if (!has_flash_on_cpu(how))
    return math_attention_backward(grad_out, q, k, v, out, logsumexp, how);
  return at::_scaled_dot_product_flash_attention_for_cpu_backward(
      grad_out, q, k, v, out, logsumexp, kDropoutOff, how.causal, optional_mask(how), how.scale);
}

// The strides on meta must equal the strides on a real device, because the strides decide whether
// later ops clone or view. A mask changes neither shapes nor strides.
Forward on_meta(const at::Tensor& q) {
  const at::Tensor out = at::empty_like(q);
  const at::Tensor logsumexp = empty_logsumexp(q);
  return {out, logsumexp};
}

}  // namespace

at::Tensor empty_logsumexp(const at::Tensor& q) {
  const at::Tensor logsumexp_BSH =
      at::empty({q.size(0), q.size(2), q.size(1)}, q.options().dtype(sum_dtype(q.scalar_type())));
  return logsumexp_BSH.transpose(1, 2);
}

at::Tensor empty_gradient(const at::Tensor& input) {
  const at::Tensor gradient =
      at::empty({input.size(0), input.size(2), input.size(1), input.size(3)}, input.options());
  return gradient.transpose(1, 2);
}

Forward attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
               const Attention& how) {
  if (q.is_meta()) return on_meta(q);
  return q.is_cpu() ? on_cpu(q, k, v, how) : attention_on_cuda(q, k, v, how);
}

Backward attend_backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                         const at::Tensor& v, const at::Tensor& out, const at::Tensor& logsumexp,
                         const Attention& how) {
  if (q.is_meta()) {
    const at::Tensor grad_q = empty_gradient(q);
    const at::Tensor grad_k = empty_gradient(k);
    const at::Tensor grad_v = empty_gradient(v);
    return {grad_q, grad_k, grad_v};
  }
  if (q.is_cpu()) return on_cpu_backward(grad_out, q, k, v, out, logsumexp, how);
  return attention_on_cuda_backward(grad_out, q, k, v, out, logsumexp, how);
}

void check_attention_inputs(const char* op, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v) {
  TORCH_CHECK(q.dim() == 4 && k.dim() == 4 && v.dim() == 4, op,
              ": q, k and v must be [batch, heads, tokens, head_dim], found ", q.sizes(), ", ",
              k.sizes(), ", ", v.sizes());
  TORCH_CHECK(k.sizes() == v.sizes() && q.size(0) == k.size(0) && q.size(3) == k.size(3) &&
                  k.size(1) > 0 && q.size(1) % k.size(1) == 0,
              op,
              ": k and v must have the same shape, q's batch and head_dim, and a head count that "
              "divides q's head count; found ",
              q.sizes(), ", ", k.sizes(), ", ", v.sizes());
  TORCH_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type(), op,
              ": q, k and v must have the same dtype, found ", q.scalar_type(), ", ",
              k.scalar_type(), ", ", v.scalar_type());
}

namespace {

struct AttentionOp {
  static constexpr auto kForward =
      "attention(Tensor q, Tensor k, Tensor v, bool causal, float? scale) -> (Tensor, Tensor)";
  static constexpr auto kBackward =
      "attention_backward(Tensor grad_out, Tensor q, Tensor k, Tensor v, Tensor out, "
      "Tensor logsumexp, bool causal, float? scale) -> (Tensor, Tensor, Tensor)";

  static Forward forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal,
                         std::optional<double> scale) {
    check_attention_inputs("rematch::attention", q, k, v);
    return attend(q, k, v, {causal, scale, {}});
  }

  static Backward backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& v, const at::Tensor& out, const at::Tensor& logsumexp,
                           bool causal, std::optional<double> scale) {
    return attend_backward(grad_out, q, k, v, out, logsumexp, {causal, scale, {}});
  }

  static Derivative derivative(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               bool causal, std::optional<double> scale) {
    return {.inputs = {q, k, v},
            .kept = {q, k, v},
            .formula =
                [causal, scale](const Saved& saved) {
                  return gradients<AttentionOp>(saved.grad, saved.kept[0], saved.kept[1],
                                                saved.kept[2], saved.outputs[0], saved.outputs[1],
                                                causal, scale);
                },
            .reads_first_output = true};
  }
};

struct MaskedAttentionOp {
  static constexpr auto kForward =
      "masked_attention(Tensor q, Tensor k, Tensor v, Tensor mask) -> (Tensor, Tensor)";
  static constexpr auto kBackward =
      "masked_attention_backward(Tensor grad_out, Tensor q, Tensor k, Tensor v, Tensor mask, "
      "Tensor out, Tensor logsumexp) -> (Tensor, Tensor, Tensor)";

  static Forward forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         const at::Tensor& mask) {
    check_inputs(q, k, v, mask);
    return attend(q, k, v, {/*causal=*/false, std::nullopt, mask});
  }

  static Backward backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                           const at::Tensor& v, const at::Tensor& mask, const at::Tensor& out,
                           const at::Tensor& logsumexp) {
    return attend_backward(grad_out, q, k, v, out, logsumexp,
                           {/*causal=*/false, std::nullopt, mask});
  }

  static Derivative derivative(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const at::Tensor& mask) {
    return {.inputs = {q, k, v},
            .kept = {q, k, v, mask},
            .formula =
                [](const Saved& saved) {
                  return gradients<MaskedAttentionOp>(saved.grad, saved.kept[0], saved.kept[1],
                                                      saved.kept[2], saved.kept[3],
                                                      saved.outputs[0], saved.outputs[1]);
                },
            .reads_first_output = true};
  }

 private:
  static void check_inputs(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                           const at::Tensor& mask) {
    TORCH_CHECK(q.dim() == 4 && k.dim() == 4 && v.dim() == 4 && mask.dim() == 4,
                "rematch::masked_attention: q, k, v and mask must have 4 dimensions, found ",
                q.sizes(), ", ", k.sizes(), ", ", v.sizes(), ", ", mask.sizes());
    TORCH_CHECK(
        k.sizes() == v.sizes() && q.size(0) == k.size(0) && q.size(1) == k.size(1) &&
            q.size(3) == k.size(3),
        "rematch::masked_attention: k and v must have the same shape, and q's batch, heads and "
        "head_dim; found ",
        q.sizes(), ", ", k.sizes(), ", ", v.sizes());
    TORCH_CHECK(at::is_expandable_to(mask.sizes(), {q.size(0), q.size(1), q.size(2), k.size(2)}),
                "rematch::masked_attention: the mask must broadcast to [batch, heads, queries, "
                "keys], found ",
                mask.sizes(), " for q ", q.sizes(), " and k ", k.sizes());
    TORCH_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type() &&
                    q.scalar_type() == mask.scalar_type(),
                "rematch::masked_attention: q, k, v and mask must have the same dtype, found ",
                q.scalar_type(), ", ", k.scalar_type(), ", ", v.scalar_type(), ", ",
                mask.scalar_type());
    TORCH_CHECK(!mask.requires_grad(),
                "rematch::masked_attention: the mask gets no gradient; pass mask.detach()");
  }
};

TORCH_LIBRARY_FRAGMENT(rematch, library) {
  register_op<AttentionOp>(library);
  register_op<MaskedAttentionOp>(library);
}

}  // namespace
}  // namespace rematch::kernels

namespace rematch {

std::tuple<at::Tensor, at::Tensor> attention(const at::Tensor& q, const at::Tensor& k,
                                             const at::Tensor& v, bool causal,
                                             std::optional<double> scale) {
  return kernels::call<kernels::AttentionOp>(q, k, v, causal, scale);
}

std::tuple<at::Tensor, at::Tensor> masked_attention(const at::Tensor& q, const at::Tensor& k,
                                                    const at::Tensor& v, const at::Tensor& mask) {
  return kernels::call<kernels::MaskedAttentionOp>(q, k, v, mask);
}

}  // namespace rematch
