// CUDA kernels by way of LibTorch's own: flash, cuDNN, memory-efficient or composed, the first in
// this order that takes dtype and head width and is enabled (backend.h). Needs no CUDA header.
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

#include "kernels/attention/attention_kernels.h"
#include "kernels/attention/attention_math.h"
#include "kernels/attention/backend.h"

namespace rematch::kernels {
namespace {

constexpr double kNoDropout = 0.0;
constexpr std::int64_t kHeadDimMultiple = 8;
constexpr std::int64_t kLogsumexpMultiple = 32;  // the efficient kernel pads its rows to this

AttentionBackend choose_backend(const at::Tensor& q) {
  const at::Context& context = at::globalContext();
  const bool is_half = q.scalar_type() == at::kBFloat16 || q.scalar_type() == at::kHalf;
  if (q.size(3) % kHeadDimMultiple == 0) {
    if (is_half && context.userEnabledFlashSDP()) return AttentionBackend::kFlash;
    if (is_half && context.userEnabledCuDNNSDP()) return AttentionBackend::kCudnn;
    if (q.scalar_type() != at::kDouble && context.userEnabledMemEfficientSDP()) {
      return AttentionBackend::kEfficient;
    }
  }
  return AttentionBackend::kMath;
}

// The efficient kernel wants a key head per query head: repeats each G times, head after head.
at::Tensor repeat_heads(const at::Tensor& x_BGTD, std::int64_t num_heads) {
  const std::int64_t groups = x_BGTD.size(1);
  if (groups == num_heads) return x_BGTD;
  const at::Tensor repeated = x_BGTD.unsqueeze(2).expand(
      {x_BGTD.size(0), groups, num_heads / groups, x_BGTD.size(2), x_BGTD.size(3)});
  return repeated.reshape({x_BGTD.size(0), num_heads, x_BGTD.size(2), x_BGTD.size(3)});
}

at::Tensor sum_heads(const at::Tensor& grad_BHTD, std::int64_t groups) {
  const std::int64_t heads = grad_BHTD.size(1);
  if (groups == heads) return grad_BHTD;
  const at::Tensor grouped = grad_BHTD.reshape(
      {grad_BHTD.size(0), groups, heads / groups, grad_BHTD.size(2), grad_BHTD.size(3)});
  return grouped.sum(2);
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

// Generator seed and offset of a forward without dropout; the kernels do not read them.
at::Tensor no_philox() { return at::empty({}, at::TensorOptions().dtype(at::kLong)); }

Forward efficient_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          bool causal, std::optional<double> scale) {
  const auto [out, logsumexp, seed, offset] = at::_scaled_dot_product_efficient_attention(
      q, repeat_heads(k, q.size(1)), repeat_heads(v, q.size(1)), /*attn_bias=*/std::nullopt,
      /*compute_log_sumexp=*/true, kNoDropout, causal, scale);
  return {out, logsumexp.narrow(2, 0, q.size(2)).contiguous()};
}

Backward efficient_backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const at::Tensor& out, const at::Tensor& logsumexp,
                            bool causal, std::optional<double> scale) {
  const auto [grad_q, grad_k, grad_v, grad_bias] =
      at::_scaled_dot_product_efficient_attention_backward(
          grad_out, q, repeat_heads(k, q.size(1)), repeat_heads(v, q.size(1)),
          /*attn_bias=*/at::Tensor(), out, pad_logsumexp(logsumexp), no_philox(), no_philox(),
          kNoDropout, {true, true, true, false}, causal, scale);
  return {grad_q, sum_heads(grad_k, k.size(1)), sum_heads(grad_v, k.size(1))};
}

}  // namespace

Forward attention_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal,
                       std::optional<double> scale) {
  check_attention_inputs(q, k, v);
  switch (choose_backend(q)) {
    case AttentionBackend::kFlash: {
      const auto result = at::_scaled_dot_product_flash_attention(
          q, k, v, kNoDropout, causal, /*return_debug_mask=*/false, scale);
      return {std::get<0>(result), std::get<1>(result)};
    }
    case AttentionBackend::kCudnn: {
      const auto result = at::_scaled_dot_product_cudnn_attention(
          q, k, v, /*attn_bias=*/std::nullopt, /*compute_log_sumexp=*/true, kNoDropout, causal,
          /*return_debug_mask=*/false, scale);
      return {std::get<0>(result), std::get<1>(result).squeeze(-1)};
    }
    case AttentionBackend::kEfficient:
      return efficient_forward(q, k, v, causal, scale);
    case AttentionBackend::kMath:
      break;
  }
  return math_attention(q, k, v, {causal, scale, {}});
}

Backward attention_backward_cuda(const at::Tensor& grad_out, const at::Tensor& q,
                                 const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
                                 const at::Tensor& logsumexp, bool causal,
                                 std::optional<double> scale) {
  const at::Tensor none;
  switch (choose_backend(q)) {
    case AttentionBackend::kFlash:
      return at::_scaled_dot_product_flash_attention_backward(
          grad_out, q, k, v, out, logsumexp, none, none, q.size(2), k.size(2), kNoDropout, causal,
          no_philox(), no_philox(), scale);
    case AttentionBackend::kCudnn:
      return at::_scaled_dot_product_cudnn_attention_backward(
          grad_out, q, k, v, out, logsumexp.unsqueeze(-1), no_philox(), no_philox(), none, none,
          none, q.size(2), k.size(2), kNoDropout, causal, scale);
    case AttentionBackend::kEfficient:
      return efficient_backward(grad_out, q, k, v, out, logsumexp, causal, scale);
    case AttentionBackend::kMath:
      break;
  }
  return math_attention_backward(grad_out, q, k, v, out, logsumexp, {causal, scale, {}});
}

}  // namespace rematch::kernels
