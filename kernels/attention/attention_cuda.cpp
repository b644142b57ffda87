#include <ATen/Context.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <cstdint>
#include <limits>

#include "kernels/attention/attention_variants.h"
#include "kernels/attention/backend.h"

namespace rematch::kernels {
namespace {

constexpr std::int64_t kHeadDimMultiple = 8;
// The memory-efficient kernel pads the rows of its logsumexp to a multiple of this number.
constexpr std::int64_t kLogsumexpMultiple = 32;
// Each row of the memory-efficient kernel's mask starts at a multiple of this many elements.
constexpr std::int64_t kMaskMultiple = 16;

AttentionBackend choose_backend(const at::Tensor& q, const Attention& how) {
  const at::Context& context = at::globalContext();
  const bool is_half = q.scalar_type() == at::kBFloat16 || q.scalar_type() == at::kHalf;
  const bool fits = q.size(3) % kHeadDimMultiple == 0;
  if (is_half && fits && !how.mask.defined()) {
    if (context.userEnabledFlashSDP()) return AttentionBackend::kFlash;
    if (context.userEnabledCuDNNSDP()) return AttentionBackend::kCudnn;
  }
  if (q.scalar_type() != at::kDouble && fits && context.userEnabledMemEfficientSDP()) {
    return AttentionBackend::kEfficient;
  }
  return AttentionBackend::kMath;
}

// Lays out the gradient as [batch, tokens, heads, head_dim] in memory. Every backend except cuDNN
// uses this layout, and the strides decide whether later ops clone or view.
at::Tensor laid_out(const at::Tensor& grad_BHTD) {
  return grad_BHTD.transpose(1, 2).contiguous().transpose(1, 2);
}

// Returns a placeholder for the random generator's seed or offset. Kernels do not read it, because
// there is no dropout. cuDNN's backward needs the placeholder on q's device. The other backends
// need it on the CPU.
at::Tensor no_philox(at::Device device = at::kCPU) {
  return at::empty({}, at::TensorOptions().dtype(at::kLong).device(device));
}

std::int64_t round_up(std::int64_t count, std::int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

// Expands the mask to every batch and head, as the kernel requires. Copies the mask so that each
// row starts at an aligned address. Dimensions that broadcast are not copied.
at::Tensor full_mask(const at::Tensor& mask, const at::Tensor& q, const at::Tensor& k) {
  const std::int64_t keys = k.size(2);
  at::Tensor rows = at::empty(
      {mask.size(0), mask.size(1), mask.size(2), round_up(keys, kMaskMultiple)}, mask.options());
  rows = rows.narrow(3, 0, keys);
  rows.copy_(mask);
  return rows.expand({q.size(0), q.size(1), q.size(2), keys});
}

// Returns the bias that the memory-efficient kernel adds to the scores.
std::optional<at::Tensor> efficient_bias(const at::Tensor& q, const at::Tensor& k,
                                         const Attention& how) {
  if (!how.mask.defined()) return std::nullopt;
  return full_mask(how.mask, q, k);
}

// Repeats each key head for the query heads that share it, because the memory-efficient kernel
// needs one key head per query head.
at::Tensor repeat_heads(const at::Tensor& x_BGTD, std::int64_t num_heads) {
  const std::int64_t groups = x_BGTD.size(1);
  if (groups == num_heads) return x_BGTD;
  const at::Tensor repeated = x_BGTD.unsqueeze(2).expand(
      {x_BGTD.size(0), groups, num_heads / groups, x_BGTD.size(2), x_BGTD.size(3)});
  return repeated.reshape({x_BGTD.size(0), num_heads, x_BGTD.size(2), x_BGTD.size(3)});
}

// Sums over the query heads that share a key head. Lays out the sum as [batch, tokens, heads,
// head_dim] in memory, like every other gradient.
at::Tensor sum_heads(const at::Tensor& grad_BHTD, std::int64_t groups) {
  const std::int64_t heads = grad_BHTD.size(1);
  if (groups == heads) return grad_BHTD;
  const at::Tensor grouped_BTGND = grad_BHTD.transpose(1, 2).reshape(
      {grad_BHTD.size(0), grad_BHTD.size(2), groups, heads / groups, grad_BHTD.size(3)});
  return grouped_BTGND.sum(3).transpose(1, 2);
}

at::Tensor pad_logsumexp(const at::Tensor& logsumexp_BHS) {
  const std::int64_t tokens = logsumexp_BHS.size(2);
  const std::int64_t padded =
      (tokens + kLogsumexpMultiple - 1) / kLogsumexpMultiple * kLogsumexpMultiple;
  if (padded == tokens) return logsumexp_BHS;
  at::Tensor result = at::full({logsumexp_BHS.size(0), logsumexp_BHS.size(1), padded},
                               std::numeric_limits<float>::infinity(), logsumexp_BHS.options());
  result.narrow(2, 0, tokens).copy_(logsumexp_BHS);
  return result;
}

AttentionForward efficient_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                     const Attention& how) {
  const std::optional<at::Tensor> bias = efficient_bias(q, k, how);
  const auto [out, logsumexp, seed, offset] = at::_scaled_dot_product_efficient_attention(
      q, repeat_heads(k, q.size(1)), repeat_heads(v, q.size(1)), bias,
      /*compute_log_sumexp=*/true, kDropoutOff, how.causal, how.scale);
  return {out, logsumexp.narrow(2, 0, q.size(2)).contiguous()};
}

AttentionBackward efficient_attention_backward(const at::Tensor& grad_out, const at::Tensor& q,
                                               const at::Tensor& k, const at::Tensor& v,
                                               const at::Tensor& out, const at::Tensor& logsumexp,
                                               const Attention& how) {
  const at::Tensor bias = efficient_bias(q, k, how).value_or(at::Tensor());
  const auto [grad_q, grad_k, grad_v, grad_bias] =
      at::_scaled_dot_product_efficient_attention_backward(
          grad_out, q, repeat_heads(k, q.size(1)), repeat_heads(v, q.size(1)), bias, out,
          pad_logsumexp(logsumexp), no_philox(), no_philox(), kDropoutOff,
          {true, true, true, false}, how.causal, how.scale);
  return {grad_q, sum_heads(grad_k, k.size(1)), sum_heads(grad_v, k.size(1))};
}

}  // namespace

AttentionForward attention_on_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   const Attention& how) {
  if (!how.mask.defined()) choose_attention_for(q, k, v, how.causal);
  switch (choose_backend(q, how)) {
    case AttentionBackend::kFlash: {
      const auto result = at::_scaled_dot_product_flash_attention(
          q, k, v, kDropoutOff, how.causal, /*return_debug_mask=*/false, how.scale);
      return {std::get<0>(result), std::get<1>(result)};
    }
    case AttentionBackend::kCudnn: {
      const auto result = at::_scaled_dot_product_cudnn_attention(
          q, k, v, /*attn_bias=*/std::nullopt, /*compute_log_sumexp=*/true, kDropoutOff, how.causal,
          /*return_debug_mask=*/false, how.scale);
      return {std::get<0>(result), std::get<1>(result).squeeze(-1)};
    }
    case AttentionBackend::kEfficient:
      return efficient_attention(q, k, v, how);
    case AttentionBackend::kMath:
      break;
  }
  return math_attention(q, k, v, how);
}

AttentionBackward attention_on_cuda_backward(const at::Tensor& grad_out, const at::Tensor& q,
                                             const at::Tensor& k, const at::Tensor& v,
                                             const at::Tensor& out, const at::Tensor& logsumexp,
                                             const Attention& how) {
  const at::Tensor none;
  switch (choose_backend(q, how)) {
    case AttentionBackend::kFlash:
      return at::_scaled_dot_product_flash_attention_backward(
          grad_out, q, k, v, out, logsumexp, none, none, q.size(2), k.size(2), kDropoutOff,
          how.causal, no_philox(), no_philox(), how.scale);
    case AttentionBackend::kCudnn: {
      const auto [grad_q, grad_k, grad_v] = at::_scaled_dot_product_cudnn_attention_backward(
          grad_out, q, k, v, out, logsumexp.unsqueeze(-1), no_philox(q.device()),
          no_philox(q.device()), none, none, none, q.size(2), k.size(2), kDropoutOff, how.causal,
          how.scale);
      return {laid_out(grad_q), laid_out(grad_k), laid_out(grad_v)};
    }
    case AttentionBackend::kEfficient:
      return efficient_attention_backward(grad_out, q, k, v, out, logsumexp, how);
    case AttentionBackend::kMath:
      break;
  }
  return math_attention_backward(grad_out, q, k, v, out, logsumexp, how);
}

}  // namespace rematch::kernels
