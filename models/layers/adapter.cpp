#include "models/layers/adapter.h"

#include <ATen/ops/add.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>

#include "models/scope/scope.h"

namespace rematch {
namespace {

constexpr double kScale = 2.0;

}  // namespace

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
  correction = at::mul(correction, kScale);
  return at::add(result, correction);
}

}  // namespace rematch
