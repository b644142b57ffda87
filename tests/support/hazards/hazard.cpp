#include "tests/support/hazards/hazard.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "models/scope/scope.h"

namespace rematch::testing::hazards {
namespace {

at::Tensor with_tail(const Layer& layer, const at::Tensor& x, const Parts& parts) {
  at::Tensor y;
  {
    const Scope core("core");
    y = layer(x, parts);
  }
  const Scope tail("tail");
  const at::Tensor small = at::isComplexType(y.scalar_type()) ? y * 0.5 : at::tanh(y);
  return y.sizes() == x.sizes() ? x * 0.5 + small : small;
}

}  // namespace

at::Generator& generator_of_models() {
  thread_local at::Generator generator = at::make_generator<at::CPUGeneratorImpl>();
  return generator;
}

at::Tensor leaf(const Shape& sizes, at::ScalarType dtype) {
  return at::randn(sizes, generator_of_models(), at::TensorOptions(dtype))
      .mul(0.5)
      .requires_grad_();
}

at::Tensor indices(std::int64_t count, std::int64_t limit) {
  return at::arange(0, count, at::TensorOptions(at::kLong)).remainder(limit);
}

Model layers_of(const std::vector<Shape>& weights, const Layer& layer, const Options& options) {
  Model model;
  model.input = leaf(options.input, options.dtype);
  for (int index = 0; index < options.layers; ++index) {
    Parts parts;
    parts.layer = index;
    parts.watched = model.watched;
    parts.generator = at::make_generator<at::CPUGeneratorImpl>(1000 + index);
    for (const Shape& shape : weights) parts.weights.push_back(leaf(shape, options.dtype));
    for (const Shape& shape : options.buffers) parts.buffers.push_back(at::ones(shape));
    model.parameters.insert(model.parameters.end(), parts.weights.begin(), parts.weights.end());
    model.buffers.insert(model.buffers.end(), parts.buffers.begin(), parts.buffers.end());
    model.generators.push_back(parts.generator);
    model.layers.push_back([layer, parts, bare = options.bare](const at::Tensor& x) {
      return bare ? layer(x, parts) : with_tail(layer, x, parts);
    });
  }
  return model;
}

Hazard hazard(const std::string& name, const std::vector<Shape>& weights, const Layer& layer,
              const Options& options, const std::string& refusal) {
  return {name, [=] { return layers_of(weights, layer, options); }, refusal};
}

const std::vector<Hazard>& all_hazards() {
  static const std::vector<Hazard> all = [] {
    std::vector<Hazard> hazards;
    for (const auto& theme :
         {attention_hazards, convolution_hazards, data_dependent_hazards, dtype_hazards,
          function_hazards, held_hazards, hook_hazards, in_place_hazards, indexing_hazards,
          mode_hazards, multi_output_hazards, norm_hazards, optimizer_hazards, random_hazards,
          recurrent_hazards, sharing_hazards, view_hazards}) {
      for (Hazard& hazard : theme()) hazards.push_back(std::move(hazard));
    }
    return hazards;
  }();
  return all;
}

}  // namespace rematch::testing::hazards
