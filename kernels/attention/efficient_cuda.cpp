#include "kernels/attention/efficient_cuda.h"

#include <ATen/Context.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <cstdint>
#include <limits>

namespace rematch::kernels {
namespace {

constexpr double kNoDropout = 0.0;
constexpr std::int64_t kHeadDimMultiple = 8;
constexpr std::int64_t kLogsumexpMultiple = 32;  // the kernel pads its rows to this

// The kernel wants a key head per query head: repeats each G times, head after head.
at::Tensor repeat_heads(const at::Tensor& x_BGTD, std::int64_t num_heads) {
  const std::int64_t groups = x_BGTD.size(1);
  if (groups == num_heads) return x_BGTD;
  const at::Tensor repeated = x_BGTD.unsqueeze(2).expand(
      {x_BGTD.size(0), groups, num_heads / groups, x_BGTD.size(2), x_BGTD.size(3)});
  return repeated.reshape({x_BGTD.size(0), num_heads, x_BGTD.size(2), x_BGTD.size(3)});
}

// Added up where heads follow tokens in memory, so that the sum lies as every other gradient.
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

// Generator seed and offset of a forward without dropout; the kernels do not read them.
at::Tensor no_philox() { return at::empty({}, at::TensorOptions().dtype(at::kLong)); }

}  // namespace

bool efficient_attention_takes(const at::Tensor& q) {
  return q.scalar_type() != at::kDouble && q.size(3) % kHeadDimMultiple == 0 &&
         at::globalContext().userEnabledMemEfficientSDP();
}

std::tuple<at::Tensor, at::Tensor> efficient_attention(const at::Tensor& q, const at::Tensor& k,
                                                       const at::Tensor& v,
                                                       const EfficientAttention& how) {
  const auto [out, logsumexp, seed, offset] = at::_scaled_dot_product_efficient_attention(
      q, repeat_heads(k, q.size(1)), repeat_heads(v, q.size(1)), how.bias,
      /*compute_log_sumexp=*/true, kNoDropout, how.causal, how.scale);
  return {out, logsumexp.narrow(2, 0, q.size(2)).contiguous()};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> efficient_attention_backward(
    const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    const at::Tensor& out, const at::Tensor& logsumexp, const EfficientAttention& how) {
  const auto [grad_q, grad_k, grad_v, grad_bias] =
      at::_scaled_dot_product_efficient_attention_backward(
          grad_out, q, repeat_heads(k, q.size(1)), repeat_heads(v, q.size(1)),
          how.bias.value_or(at::Tensor()), out, pad_logsumexp(logsumexp), no_philox(), no_philox(),
          kNoDropout, {true, true, true, false}, how.causal, how.scale);
  return {grad_q, sum_heads(grad_k, k.size(1)), sum_heads(grad_v, k.size(1))};
}

}  // namespace rematch::kernels
