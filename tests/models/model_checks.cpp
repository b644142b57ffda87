#include "tests/models/model_checks.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>

#include "harness/trace/backward_as_with_data.h"
#include "harness/trace/meta_kernels.h"
#include "policies/base/rejected.h"
#include "policies/trace/trace_op.h"
#include "tests/models/op_stream.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

struct Step {
  std::vector<OpSeen> forward, backward;
};

Step record_step(const ModelSpec& spec, at::Device device) {
  const auto model = make_model(spec, device);
  const Batch batch = make_data(spec, "", 1, device)->batch(0);
  OpStream forward, backward;
  at::Tensor loss;
  {
    const OpModeGuard guard(&forward);
    loss = model->loss(batch);
  }
  CHECK(loss.dim() == 0);
  CHECK(loss.scalar_type() == at::kFloat);
  {
    const OpModeGuard guard(&backward);
    // on meta, makes backward run the same ops as with data
    BackwardAsWithData as_with_data;
    const OpModeGuard above(&as_with_data);
    loss.backward();
  }
  return {forward.ops(), backward.ops()};
}

void check_same(const std::vector<OpSeen>& cpu, const std::vector<OpSeen>& meta) {
  REQUIRE(cpu.size() == meta.size());
  for (std::size_t i = 0; i < cpu.size(); ++i) {
    if (is_same_op(cpu[i].name, meta[i].name) && cpu[i].outputs == meta[i].outputs) continue;
    FAIL("op " << i << ": CPU " << cpu[i].name << " " << cpu[i].outputs << ", meta " << meta[i].name
               << " " << meta[i].outputs);
  }
}

}  // namespace

ModelSpec spec_of(std::string_view preset, const std::map<std::string, std::int64_t>& overrides,
                  std::string_view dtype) {
  const auto made = make_spec(preset, overrides, dtype);
  if (const auto* rejected = std::get_if<Rejected>(&made)) FAIL(rejected->message);
  return std::get<ModelSpec>(made);
}

void check_every_parameter_learns(const ModelSpec& spec) {
  const auto model = make_model(spec, at::kCPU);
  const Batch batch = make_data(spec, "", 1, at::kCPU)->batch(0);
  const at::Tensor loss = model->loss(batch);
  CHECK(at::isfinite(loss).item<bool>());
  loss.backward();
  REQUIRE_FALSE(model->parameters().empty());
  for (const NamedTensor& parameter : model->parameters()) {
    CAPTURE(parameter.name);
    const at::Tensor& gradient = parameter.tensor.grad();
    REQUIRE(gradient.defined());
    CHECK(gradient.scalar_type() == parameter.tensor.scalar_type());
    CHECK(at::isfinite(gradient).all().item<bool>());
    CHECK(gradient.abs().max().item<float>() > 0.0F);
  }
}

void check_meta_runs_the_same_ops(const ModelSpec& spec) {
  install_meta_kernels();
  const Step cpu = record_step(spec, at::kCPU);
  const Step meta = record_step(spec, at::kMeta);
  REQUIRE(cpu.forward.size() > 20);
  check_same(cpu.forward, meta.forward);
  check_same(cpu.backward, meta.backward);
}

std::map<std::string, at::Tensor> parameters_in_double(const Model& model) {
  std::map<std::string, at::Tensor> parameters;
  for (const NamedTensor& parameter : model.parameters()) {
    parameters[parameter.name] = parameter.tensor.detach().to(at::kDouble).requires_grad_(true);
  }
  for (const NamedTensor& weight : model.frozen()) {
    parameters[weight.name] = weight.tensor.to(at::kDouble);
  }
  return parameters;
}

void check_against_reference(Model& model, const Batch& batch, const at::Tensor& reference_loss,
                             const std::map<std::string, at::Tensor>& reference_parameters) {
  const at::Tensor loss = model.loss(batch);
  loss.backward();
  reference_loss.backward();
  CHECK(loss.item<double>() == Approx(reference_loss.item<double>()).epsilon(1e-5));
  for (const NamedTensor& parameter : model.parameters()) {
    CAPTURE(parameter.name);
    const at::Tensor expected = reference_parameters.at(parameter.name).grad();
    REQUIRE(expected.defined());
    const at::Tensor error = parameter.tensor.grad().to(at::kDouble) - expected;
    // Allows for float32 rounding, relative to the largest element. A wrong formula gives errors as
    // large as the gradient itself.
    CHECK(error.abs().max().item<double>() <= 2e-4 * expected.abs().max().item<double>());
  }
}

}  // namespace rematch
