// CUDA kernels by way of LibTorch's memory-efficient attention, the fused one that takes a mask in
// float32 and bfloat16, or composed. Needs no CUDA header.
#include <ATen/ops/empty.h>

#include <cstdint>

#include "kernels/attention/attention_math.h"
#include "kernels/attention/efficient_cuda.h"
#include "kernels/masked_attention/masked_attention_kernels.h"

namespace rematch::kernels::masked {
namespace {

constexpr std::int64_t kMaskMultiple = 16;  // elements between rows of the mask

std::int64_t round_up(std::int64_t count, std::int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

// One mask a batch and head, without a copy of what broadcasts, in rows that start aligned.
at::Tensor full_mask(const at::Tensor& mask, const at::Tensor& q, const at::Tensor& k) {
  const std::int64_t keys = k.size(2);
  at::Tensor rows = at::empty(
      {mask.size(0), mask.size(1), mask.size(2), round_up(keys, kMaskMultiple)}, mask.options());
  rows = rows.narrow(3, 0, keys);
  rows.copy_(mask);
  return rows.expand({q.size(0), q.size(1), q.size(2), keys});
}

}  // namespace

Forward forward_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& mask) {
  check_inputs(q, k, v, mask);
  if (!efficient_attention_takes(q)) {
    return math_attention(q, k, v, {/*causal=*/false, std::nullopt, mask});
  }
  return efficient_attention(q, k, v, {/*causal=*/false, std::nullopt, full_mask(mask, q, k)});
}

Backward backward_cuda(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& v, const at::Tensor& mask, const at::Tensor& out,
                       const at::Tensor& logsumexp) {
  if (!efficient_attention_takes(q)) {
    return math_attention_backward(grad_out, q, k, v, out, logsumexp,
                                   {/*causal=*/false, std::nullopt, mask});
  }
  return efficient_attention_backward(grad_out, q, k, v, out, logsumexp,
                                      {/*causal=*/false, std::nullopt, full_mask(mask, q, k)});
}

}  // namespace rematch::kernels::masked
