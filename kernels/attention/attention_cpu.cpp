// LibTorch's flash attention for the CPU, or composed where that is disabled.
#include <ATen/Context.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>

#include "kernels/attention/attention_kernels.h"
#include "kernels/attention/attention_math.h"

namespace rematch::kernels {
namespace {

constexpr double kNoDropout = 0.0;

}  // namespace

Forward attention_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, bool causal,
                      std::optional<double> scale) {
  check_attention_inputs(q, k, v);
  if (!at::globalContext().userEnabledFlashSDP()) {
    return math_attention(q, k, v, {causal, scale, {}});
  }
  return at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, kNoDropout, causal,
                                                         /*attn_mask=*/std::nullopt, scale);
}

Backward attention_backward_cpu(const at::Tensor& grad_out, const at::Tensor& q,
                                const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
                                const at::Tensor& logsumexp, bool causal,
                                std::optional<double> scale) {
  if (!at::globalContext().userEnabledFlashSDP()) {
    return math_attention_backward(grad_out, q, k, v, out, logsumexp, {causal, scale, {}});
  }
  return at::_scaled_dot_product_flash_attention_for_cpu_backward(
      grad_out, q, k, v, out, logsumexp, kNoDropout, causal, /*attn_mask=*/std::nullopt, scale);
}

}  // namespace rematch::kernels
