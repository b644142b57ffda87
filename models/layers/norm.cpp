#include "models/layers/norm.h"

#include <ATen/ops/add.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rsqrt.h>

#include <utility>

#include "kernels/fused/layer_norm.h"
#include "kernels/fused/rms_norm.h"
#include "models/layers/collectives.h"

namespace rematch {
namespace {

// Uses one statement per op, because the temporaries of a nested expression live until the whole
// expression ends.
at::Tensor normalise(const at::Tensor& x, double eps) {
  at::Tensor statistic = at::pow(x, 2);
  statistic = at::mean(statistic, /*dim=*/-1, /*keepdim=*/true);
  statistic = at::add(statistic, eps);
  statistic = at::rsqrt(statistic);
  return at::mul(x, statistic);
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps, Ops ops) {
  if (ops == Ops::kFused) return fused::rms_norm(x, weight, eps);
  const at::Tensor wide = x.to(at::kFloat);
  at::Tensor normalised = normalise(wide, eps);
  normalised = normalised.to(x.scalar_type());
  if (!weight.defined()) return normalised;
  return at::mul(normalised, weight);
}

// The results on every rank depend on the sum of squares over all ranks. The backward of copy()
// therefore sums the gradients of this sum over the ranks.
at::Tensor split_rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps,
                          const RankAxis& axis) {
  const at::Tensor wide = x.to(at::kFloat);
  at::Tensor statistic = at::pow(wide, 2);
  statistic = at::mean(statistic, /*dim=*/-1, /*keepdim=*/true);
  statistic = reduce(std::move(statistic), axis);
  statistic = copy(std::move(statistic), axis);
  statistic = at::mul(statistic, 1.0 / static_cast<double>(axis.size));
  statistic = at::add(statistic, eps);
  statistic = at::rsqrt(statistic);
  at::Tensor normalised = at::mul(wide, statistic);
  normalised = normalised.to(x.scalar_type());
  return at::mul(normalised, weight);
}

at::Tensor layer_norm_float32(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                              double eps) {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor wide_weight = weight.defined() ? weight.to(at::kFloat) : weight;
  const at::Tensor wide_bias = bias.defined() ? bias.to(at::kFloat) : bias;
  return std::get<0>(at::native_layer_norm(wide, {x.size(-1)}, wide_weight, wide_bias, eps));
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                      double eps, Ops ops) {
  if (ops == Ops::kFused) return fused::layer_norm(x, weight, bias, /*offset=*/0.0, eps);
  const at::Tensor result = layer_norm_float32(x, weight, bias, eps);
  return result.to(x.scalar_type());
}

}  // namespace rematch
