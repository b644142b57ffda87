#include "models/layers/linear.h"

#include <ATen/ops/linear.h>

namespace rematch {

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

}  // namespace rematch
