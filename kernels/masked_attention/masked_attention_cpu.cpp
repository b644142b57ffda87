// LibTorch's flash attention for the CPU, or composed where fused kernels are disabled.
#include <ATen/Context.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>

#include "kernels/attention/attention_math.h"
#include "kernels/masked_attention/masked_attention_kernels.h"

namespace rematch::kernels::masked {
namespace {

constexpr double kNoDropout = 0.0;

}  // namespace

Forward forward_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const at::Tensor& mask) {
  check_inputs(q, k, v, mask);
  if (!at::globalContext().userEnabledMemEfficientSDP()) {
    return math_attention(q, k, v, {/*causal=*/false, std::nullopt, mask});
  }
  return at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, kNoDropout, /*is_causal=*/false,
                                                         mask);
}

Backward backward_cpu(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                      const at::Tensor& v, const at::Tensor& mask, const at::Tensor& out,
                      const at::Tensor& logsumexp) {
  if (!at::globalContext().userEnabledMemEfficientSDP()) {
    return math_attention_backward(grad_out, q, k, v, out, logsumexp,
                                   {/*causal=*/false, std::nullopt, mask});
  }
  return at::_scaled_dot_product_flash_attention_for_cpu_backward(
      grad_out, q, k, v, out, logsumexp, kNoDropout, /*is_causal=*/false, mask);
}

}  // namespace rematch::kernels::masked
