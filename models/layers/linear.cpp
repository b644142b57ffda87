#include "models/layers/linear.h"

#include <ATen/ops/add.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/native_dropout.h>

#include "models/scope/scope.h"

namespace rematch {
namespace {

constexpr double kAdapterScale = 2.0;

}  // namespace

Linear make_linear(Parameters& parameters, const std::string& name, std::int64_t inputs,
                   std::int64_t outputs, Bias bias) {
  const InitialValues values = uniform_by_fan_in(inputs);
  Linear linear;
  linear.weight = parameters.add(name + ".weight", {outputs, inputs}, values);
  if (bias == Bias::kYes) linear.bias = parameters.add(name + ".bias", {outputs}, values);
  return linear;
}

at::Tensor apply_linear(const Linear& linear, const at::Tensor& x) {
  return at::linear(x, linear.weight, linear.bias);
}

AdaptedLinear make_adapted_linear(Parameters& parameters, const std::string& name,
                                  std::int64_t inputs, std::int64_t outputs, std::int64_t rank) {
  AdaptedLinear linear;
  linear.base = make_linear(parameters, name, inputs, outputs, Bias::kNo);
  if (rank == 0) return linear;
  linear.down =
      parameters.add_learning(name + ".adapter.down", {rank, inputs}, uniform_by_fan_in(inputs));
  linear.up =
      parameters.add_learning(name + ".adapter.up", {outputs, rank}, uniform_by_fan_in(rank));
  return linear;
}

at::Tensor apply_linear(const AdaptedLinear& linear, const at::Tensor& x) {
  if (!linear.down.defined()) return apply_linear(linear.base, x);
  const Scope scope("adapted");
  at::Tensor result = apply_linear(linear.base, x);
  at::Tensor correction = at::linear(x, linear.down);
  correction = at::linear(correction, linear.up);
  correction = at::mul(correction, kAdapterScale);
  return at::add(result, correction);
}

double dropout_ratio(const ModelSpec& spec) {
  return static_cast<double>(spec.option("dropout_percent")) / 100.0;
}

at::Tensor dropout(at::Tensor x, double ratio) {
  if (ratio == 0.0) return x;
  return std::get<0>(at::native_dropout(x, ratio, /*train=*/true));
}

}  // namespace rematch
