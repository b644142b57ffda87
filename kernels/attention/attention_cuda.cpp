// CUDA kernels by way of LibTorch's own: flash, cuDNN, memory-efficient or composed, the first in
// this order that takes dtype and head width and is enabled (backend.h). Needs no CUDA header.
#include <ATen/Context.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/empty.h>

#include <cstdint>

#include "kernels/attention/attention_kernels.h"
#include "kernels/attention/attention_math.h"
#include "kernels/attention/backend.h"
#include "kernels/attention/efficient_cuda.h"

namespace rematch::kernels {
namespace {

constexpr double kNoDropout = 0.0;
constexpr std::int64_t kHeadDimMultiple = 8;

AttentionBackend choose_backend(const at::Tensor& q) {
  const at::Context& context = at::globalContext();
  const bool is_half = q.scalar_type() == at::kBFloat16 || q.scalar_type() == at::kHalf;
  if (is_half && q.size(3) % kHeadDimMultiple == 0) {
    if (context.userEnabledFlashSDP()) return AttentionBackend::kFlash;
    if (context.userEnabledCuDNNSDP()) return AttentionBackend::kCudnn;
  }
  return efficient_attention_takes(q) ? AttentionBackend::kEfficient : AttentionBackend::kMath;
}

// The gradient in memory as [batch, tokens, heads, head_dim], as every backend but cuDNN makes it:
// what follows in a model clones or views by strides.
at::Tensor laid_out(const at::Tensor& grad_BHTD) {
  return grad_BHTD.transpose(1, 2).contiguous().transpose(1, 2);
}

// Generator seed and offset of a forward without dropout; the kernels do not read them.
at::Tensor no_philox() { return at::empty({}, at::TensorOptions().dtype(at::kLong)); }

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
      return efficient_attention(q, k, v, {causal, scale, std::nullopt});
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
    case AttentionBackend::kCudnn: {
      const auto [grad_q, grad_k, grad_v] = at::_scaled_dot_product_cudnn_attention_backward(
          grad_out, q, k, v, out, logsumexp.unsqueeze(-1), no_philox(), no_philox(), none, none,
          none, q.size(2), k.size(2), kNoDropout, causal, scale);
      return {laid_out(grad_q), laid_out(grad_k), laid_out(grad_v)};
    }
    case AttentionBackend::kEfficient:
      return efficient_attention_backward(grad_out, q, k, v, out, logsumexp,
                                          {causal, scale, std::nullopt});
    case AttentionBackend::kMath:
      break;
  }
  return math_attention_backward(grad_out, q, k, v, out, logsumexp, {causal, scale, {}});
}

}  // namespace rematch::kernels
