#include "harness/run/parity_pass.h"

#include <ATen/ops/pow.h>
#include <ATen/ops/sum.h>

#include <cmath>
#include <string>

#include "harness/measure/hash.h"
#include "harness/run/finite_loss.h"

namespace rematch {
namespace {

// Note [Gradient norm]
// The square root of the sum of squares of all gradients, each tensor squared and summed in
// float64, the tensors' sums added in parameter order: the same in Python.
double squares_of(const at::Tensor& gradient) {
  return gradient.to(at::kDouble).pow(2).sum().item<double>();
}

class ParityListener final : public Watching {
 public:
  ParityListener(PassPosition& position, const Training& training, at::Device device,
                 PointRecord& record)
      : Watching(position), training_(training), device_(device), record_(record) {}

  void before_step() override {
    Watching::before_step();
    step_ = {};
  }
  void after_forward(const at::Tensor& loss) override {
    Watching::after_forward(loss);
    const auto value = loss.item<float>();
    step_.loss_bits = bits_of(value);
    if (std::isfinite(value)) step_.loss = value;
  }
  void after_backward() override {
    Watching::after_backward();
    double squares = 0;
    for (const NamedTensor& parameter : training_.parameters()) {
      const at::Tensor& gradient = parameter.tensor.grad();
      step_.gradient_hashes[parameter.name] = tensor_hash(gradient);
      const double own = gradient.defined() ? squares_of(gradient) : 0;
      squares += own;
      if (record_.steps.empty() && own == 0) note_missing_gradient(parameter.name);
    }
    step_.gradient_norm_bits = bits_of(std::sqrt(squares));
  }
  void after_optimizer() override {
    step_.parameter_hash = tensors_hash(training_.parameter_tensors());
    step_.generator_hash = generator_hash(device_);
    record_.steps.push_back(step_);
  }

 private:
  void note_missing_gradient(const std::string& name) {
    ParityRecord& parity = record_.parity.value();
    if (parity.every_parameter_has_gradient.value_or(true)) {
      parity.first_parameter_without_gradient = name;
    }
    parity.every_parameter_has_gradient = false;
  }

  const Training& training_;
  at::Device device_;
  PointRecord& record_;
  StepRecord step_;
};

}  // namespace

void parity_pass(Training& training, at::Device device, int num_steps, PassPosition& position,
                 PointRecord& record) {
  position = {"parity", -1, {}};
  record.parity.emplace();
  record.parity->reference = record.policy;  // nothing else to compare with in this process
  record.parity->every_parameter_has_gradient = true;
  ParityListener listener(position, training, device, record);
  for (int step = 0; step < num_steps; ++step) {
    const at::Tensor loss = training.step(step, listener);
    require_finite(loss.item<double>(), step);
  }
}

}  // namespace rematch
