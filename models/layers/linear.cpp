#include "models/layers/linear.h"

#include <ATen/ops/add.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/split_with_sizes.h>

#include <utility>
#include <vector>

#include "models/scope/names.h"
#include "models/scope/scope.h"

namespace rematch {
namespace {

constexpr double kAdapterScale = 2.0;

Held held_weight(const Parameters& parameters, LinearSplit split) {
  if (split == LinearSplit::kWhole) return {};
  if (split == LinearSplit::kShared) return {.is_partial_over_tp = true};
  return {.dimension = split == LinearSplit::kByOutputs ? 0 : 1,
          .axis = parameters.tensor_parallel().axis};
}

// The bias must be added only once, after the sum over ranks. If tokens are split, each rank adds
// the bias to its tokens, so the bias's gradient is partial.
Held held_bias(const Parameters& parameters, LinearSplit split) {
  if (split == LinearSplit::kByInputs) {
    return {.is_partial_over_tp = parameters.tensor_parallel().splits_tokens};
  }
  return held_weight(parameters, split);
}

}  // namespace

Linear make_linear(Parameters& parameters, const std::string& name, std::int64_t inputs,
                   std::int64_t outputs, Bias bias, LinearSplit split) {
  const InitialValues values = uniform_by_fan_in(inputs);
  Linear linear;
  linear.weight =
      parameters.add(name + ".weight", {outputs, inputs}, values, held_weight(parameters, split));
  if (bias == Bias::kYes) {
    linear.bias = parameters.add(name + ".bias", {outputs}, values, held_bias(parameters, split));
  }
  return linear;
}

at::Tensor apply_linear(const Linear& linear, const at::Tensor& x) {
  return at::linear(x, linear.weight.value(), linear.bias.value());
}

at::Tensor apply_and_leave(const Linear& linear, const at::Tensor& x,
                           const TensorParallel& parallel) {
  if (!parallel.axis.is_split()) return apply_linear(linear, x);
  at::Tensor result = at::linear(x.view({-1, x.size(-1)}), linear.weight.value());
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes.back() = result.size(-1);
  result = result.view(sizes);
  result = leave(std::move(result), parallel);
  if (!linear.bias.defined()) return result;
  return at::add(result, linear.bias.value());
}

// One of the adapter's two weights is not split over the ranks. Each rank uses it only for a share
// of the width, so the weight's gradient is partial.
AdaptedLinear make_adapted_linear(Parameters& parameters, const std::string& name,
                                  std::int64_t inputs, std::int64_t outputs, std::int64_t rank,
                                  LinearSplit split, Bias bias) {
  AdaptedLinear linear;
  linear.base = make_linear(parameters, name, inputs, outputs, bias, split);
  if (rank == 0) return linear;
  Held down{.is_partial_over_tp = split == LinearSplit::kByOutputs};
  Held up{.is_partial_over_tp = split == LinearSplit::kByInputs};
  if (split == LinearSplit::kByInputs) down = held_weight(parameters, split);
  if (split == LinearSplit::kByOutputs) up = held_weight(parameters, split);
  linear.down = parameters.add_learning(name + ".adapter.down", {rank, inputs},
                                        uniform_by_fan_in(inputs), down);
  linear.up =
      parameters.add_learning(name + ".adapter.up", {outputs, rank}, uniform_by_fan_in(rank), up);
  return linear;
}

at::Tensor apply_linear(const AdaptedLinear& linear, const at::Tensor& x) {
  if (!linear.down.defined()) return apply_linear(linear.base, x);
  const Scope scope(scope_names::kAdapted);
  at::Tensor result = apply_linear(linear.base, x);
  at::Tensor correction = at::linear(x, linear.down.value());
  correction = at::linear(correction, linear.up.value());
  correction = at::mul(correction, kAdapterScale);
  return at::add(result, correction);
}

namespace {

Linear make_packed_linear(Parameters& parameters, const std::string& name,
                          const std::vector<PackedPart>& parts, std::int64_t inputs, Bias bias) {
  const auto part_names = [&parts](const char* suffix) {
    std::vector<PackedPart> named = parts;
    for (PackedPart& part : named) part.name += suffix;
    return named;
  };
  const InitialValues values = uniform_by_fan_in(inputs);
  const Held held = held_weight(parameters, LinearSplit::kByOutputs);
  Linear linear;
  linear.weight = parameters.add_packed(name + ".weight", part_names(".weight"), {0, inputs},
                                        /*packed=*/0, values, held);
  if (bias == Bias::kYes) {
    linear.bias =
        parameters.add_packed(name + ".bias", part_names(".bias"), {0}, /*packed=*/0, values, held);
  }
  return linear;
}

}  // namespace

JointLinear make_joint_linear(Parameters& parameters, const ModelSpec& spec,
                              const std::string& packed_name, const std::vector<PackedPart>& parts,
                              std::int64_t inputs, Bias bias) {
  JointLinear joint;
  if (spec.option("packed_weights") == 1 && parts.size() > 1) {
    joint.packed = make_packed_linear(parameters, packed_name, parts, inputs, bias);
    for (const PackedPart& part : parts) {
      joint.widths.push_back(part.size / parameters.tensor_parallel().axis.size);
    }
    return joint;
  }
  const std::int64_t rank = spec.option("adapter_rank");
  for (const PackedPart& part : parts) {
    joint.separate.push_back(make_adapted_linear(parameters, part.name, inputs, part.size, rank,
                                                 LinearSplit::kByOutputs, bias));
  }
  return joint;
}

std::vector<at::Tensor> apply_joint_linear(const JointLinear& linear, const at::Tensor& x) {
  if (linear.packed.weight.defined()) {
    return at::split_with_sizes(apply_linear(linear.packed, x), linear.widths, /*dim=*/-1);
  }
  std::vector<at::Tensor> results;
  for (const AdaptedLinear& each : linear.separate) results.push_back(apply_linear(each, x));
  return results;
}

double dropout_ratio(const ModelSpec& spec) {
  return static_cast<double>(spec.option("dropout_percent")) / 100.0;
}

at::Tensor dropout(at::Tensor x, double ratio) {
  if (ratio == 0.0) return x;
  return std::get<0>(at::native_dropout(x, ratio, /*train=*/true));
}

}  // namespace rematch
