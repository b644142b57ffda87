#include "tests/support/model_step.h"

#include <stdexcept>
#include <variant>

#include "harness/measure/memory.h"
#include "harness/trace/tracer.h"
#include "policies/base/rejected.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "tests/support/step_meter.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

template <typename T>
T value_or_throw(std::variant<T, Rejected> result) {
  if (const auto* rejected = std::get_if<Rejected>(&result)) {
    throw std::invalid_argument(rejected->message);
  }
  return std::get<T>(std::move(result));
}

}  // namespace

ModelInstance::ModelInstance(const ModelCase& which)
    : spec(value_or_throw(make_spec(which.preset, which.dimensions, which.dtype))) {
  install_counting_allocators();
  model = make_model(spec, at::kCPU);
  batch = make_data(spec, "", 1, at::kCPU)->batch(0);
}

Trace ModelInstance::trace() {
  Trace result = record_trace([this] { return model->loss(batch); });
  for (const NamedTensor& parameter : model->parameters()) parameter.tensor.mutable_grad().reset();
  return result;
}

int ModelStep::num_ops() const {
  int sum = 0;
  for (const auto& [name, count] : ops) sum += count;
  return sum;
}

ModelStep run_step(ModelInstance& instance, const Checkpoint* checkpoint) {
  StepMeter meter;
  at::Tensor loss;
  if (checkpoint != nullptr) {
    Recording recording(*checkpoint);
    loss = instance.model->loss(instance.batch);
    recording.finish();
  } else {
    loss = instance.model->loss(instance.batch);
  }
  meter.note_after_forward();
  loss.backward();
  Outcome outcome{.loss = loss.detach()};
  for (const NamedTensor& parameter : instance.model->parameters()) {
    outcome.gradients.push_back(parameter.tensor.grad());
  }
  return {outcome, meter.ops(), meter.after_forward_bytes(), meter.peak_bytes()};
}

ModelStep run_step(const ModelCase& which, const Plan& plan, Schedule schedule) {
  const Checkpoint checkpoint = strict(plan, schedule);
  ModelInstance instance(which);
  return run_step(instance, &checkpoint);
}

Plan plan_for(const std::string& policy, const Trace& trace) {
  return value_or_throw(resolve(value_or_throw(parse_policy(policy)), trace));
}

}  // namespace rematch::testing
