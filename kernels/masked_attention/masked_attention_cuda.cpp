// CUDA kernels by way of LibTorch's memory-efficient attention, the fused one that takes a mask in
// float32 and bfloat16, or composed. Needs no CUDA header.
#include <ATen/Context.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <cstdint>
#include <limits>

#include "kernels/attention/attention_math.h"
#include "kernels/masked_attention/masked_attention_kernels.h"

namespace rematch::kernels::masked {
namespace {

constexpr double kNoDropout = 0.0;
constexpr std::int64_t kHeadDimMultiple = 8;
constexpr std::int64_t kMaskMultiple = 16;       // elements between rows of the mask
constexpr std::int64_t kLogsumexpMultiple = 32;  // the kernel pads its rows to this

bool takes_efficient(const at::Tensor& q) {
  return q.scalar_type() != at::kDouble && q.size(3) % kHeadDimMultiple == 0 &&
         at::globalContext().userEnabledMemEfficientSDP();
}

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

at::Tensor pad_logsumexp(const at::Tensor& logsumexp_BHS) {
  const std::int64_t tokens = logsumexp_BHS.size(2);
  const std::int64_t padded = round_up(tokens, kLogsumexpMultiple);
  if (padded == tokens) return logsumexp_BHS;
  at::Tensor result = at::full({logsumexp_BHS.size(0), logsumexp_BHS.size(1), padded},
                               std::numeric_limits<float>::infinity(), logsumexp_BHS.options());
  result.narrow(2, 0, tokens).copy_(logsumexp_BHS);
  return result;
}

// Generator seed and offset of a forward without dropout; the kernels do not read them.
at::Tensor no_philox() { return at::empty({}, at::TensorOptions().dtype(at::kLong)); }

}  // namespace

Forward forward_cuda(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& mask) {
  check_inputs(q, k, v, mask);
  if (!takes_efficient(q)) {
    return math_attention(q, k, v, {/*causal=*/false, std::nullopt, mask});
  }
  const auto [out, logsumexp, seed, offset] = at::_scaled_dot_product_efficient_attention(
      q, k, v, full_mask(mask, q, k), /*compute_log_sumexp=*/true, kNoDropout);
  return {out, logsumexp.narrow(2, 0, q.size(2)).contiguous()};
}

Backward backward_cuda(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& v, const at::Tensor& mask, const at::Tensor& out,
                       const at::Tensor& logsumexp) {
  if (!takes_efficient(q)) {
    return math_attention_backward(grad_out, q, k, v, out, logsumexp,
                                   {/*causal=*/false, std::nullopt, mask});
  }
  const auto [grad_q, grad_k, grad_v, grad_mask] =
      at::_scaled_dot_product_efficient_attention_backward(
          grad_out, q, k, v, full_mask(mask, q, k), out, pad_logsumexp(logsumexp), no_philox(),
          no_philox(), kNoDropout, {true, true, true, false});
  return {grad_q, grad_k, grad_v};
}

}  // namespace rematch::kernels::masked
