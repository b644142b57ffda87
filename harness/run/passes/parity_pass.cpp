#include <ATen/ops/pow.h>
#include <ATen/ops/sum.h>

#include <cmath>
#include <numeric>
#include <optional>
#include <string>

#include "harness/measure/hash.h"
#include "harness/run/passes/passes.h"

namespace rematch {
namespace {

// Note [Gradient norm] The norm is the square root of the sum of squares of all gradients. Each
// tensor is squared and summed in float64, and the tensors' sums are added in parameter order. The
// Python code computes the norm in the same way. With several ranks, the ranks' sums are added, so
// a gradient that several ranks hold counts several times. A gradient is missing only if no rank
// has it.
double squares_of(const at::Tensor& gradient) {
  return gradient.to(at::kDouble).pow(2).sum().item<double>();
}

class ParityListener final : public Watching {
 public:
  ParityListener(PassPosition& position, const Training& training, Job& job, PointRecord& record)
      : Watching(position), training_(training), job_(job), record_(record) {}

  void before_step() override {
    Watching::before_step();
    step_ = {};
    loss_.reset();
  }
  void after_forward(const at::Tensor& loss) override {
    Watching::after_forward(loss);
    // The loss of a step is the sum over its micro-batches.
    // Only the last stage of a pipeline knows the loss.
    const float value = loss.defined() ? loss.item<float>() : 0.0F;
    loss_ = loss_ ? *loss_ + value : value;
    step_.loss_bits = bits_of(*loss_);
    step_.loss.reset();
    if (std::isfinite(*loss_)) step_.loss = *loss_;
  }
  void after_backward() override {
    Watching::after_backward();
    std::vector<double> own;
    std::vector<at::Tensor> gradients;
    for (const NamedTensor& parameter : training_.parameters()) {
      gradients.push_back(parameter.tensor.grad());
      own.push_back(gradients.back().defined() ? squares_of(gradients.back()) : 0);
    }
    const std::vector<std::string> hashes = tensor_hashes(gradients);
    for (std::size_t index = 0; index < hashes.size(); ++index) {
      step_.gradient_hashes[training_.parameters()[index].name] = hashes[index];
    }
    // The stages of a pipeline have different parameters, so a list of theirs cannot be added up.
    const bool is_stage = !training_.stage().is_whole();
    double squares =
        is_stage ? job_.sum({std::accumulate(own.begin(), own.end(), 0.0)}).front() : 0;
    const std::vector<double> of_ranks = is_stage ? own : job_.sum(own);
    for (std::size_t index = 0; index < of_ranks.size(); ++index) {
      if (!is_stage) squares += of_ranks[index];
      if (record_.steps.empty() && of_ranks[index] == 0) {
        note_missing_gradient(training_.parameters()[index].name);
      }
    }
    step_.gradient_norm_bits = bits_of(std::sqrt(squares));
  }
  void after_optimizer() override {
    step_.parameter_hash = tensors_hash(training_.parameter_tensors());
    step_.generator_hash = generator_hash(job_.device());
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
  Job& job_;
  PointRecord& record_;
  StepRecord step_;
  std::optional<float> loss_;  // loss of the step so far; absent before the first micro-batch
};

}  // namespace

void parity_pass(Training& training, Job& job, int num_steps, PassPosition& position,
                 PointRecord& record) {
  position = {"parity", -1, {}};
  record.parity.emplace();
  record.parity->reference = record.policy;  // the only point of this process
  record.parity->every_parameter_has_gradient = true;
  ParityListener listener(position, training, job, record);
  for (int step = 0; step < num_steps; ++step) {
    const at::Tensor loss = training.step(step, listener);
    if (loss.defined()) require_finite(loss.item<double>(), step);
  }
}

}  // namespace rematch
