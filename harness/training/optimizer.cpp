#include "harness/training/optimizer.h"

#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/copy.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <utility>

#include "kernels/fused/adamw.h"

namespace rematch {
namespace {

class NoOptimizer final : public Optimizer {
 public:
  void prepare() override {}
  std::vector<at::Tensor> state() const override { return {}; }
  void step() override {}
};

class AdamW final : public Optimizer {
 public:
  AdamW(std::vector<at::Tensor> parameters, const AdamWSettings& settings, Ops ops)
      : parameters_(std::move(parameters)), settings_(settings), ops_(ops) {}

  void prepare() override {
    if (!first_moments_.empty()) return;
    const at::NoGradGuard no_grad;
    for (const at::Tensor& parameter : parameters_) {
      const bool needs_master = parameter.scalar_type() != at::kFloat;
      masters_.push_back(needs_master ? parameter.detach().to(at::kFloat) : parameter.detach());
      first_moments_.push_back(at::zeros_like(masters_.back()));
      second_moments_.push_back(at::zeros_like(masters_.back()));
      steps_.push_back(at::zeros({}, parameter.options().dtype(at::kFloat).requires_grad(false)));
      any_master_ = any_master_ || needs_master;
    }
  }

  std::vector<at::Tensor> state() const override {
    std::vector<at::Tensor> tensors;
    for (std::size_t index = 0; index < first_moments_.size(); ++index) {
      tensors.insert(tensors.end(), {first_moments_[index], second_moments_[index], steps_[index]});
      if (!masters_[index].is_alias_of(parameters_[index])) tensors.push_back(masters_[index]);
    }
    return tensors;
  }

  void step() override {
    prepare();
    const at::NoGradGuard no_grad;
    if (any_master_ && ops_ == Ops::kFused) {
      step_in_one_pass();
    } else if (any_master_) {
      for (std::size_t index = 0; index < parameters_.size(); ++index) step_through_master(index);
    } else {
      step_all();
    }
  }

 private:
  // The arguments of one call of the fused op.
  struct Lists {
    std::vector<at::Tensor> values;
    std::vector<at::Tensor> gradients;
    std::vector<at::Tensor> first_moments;
    std::vector<at::Tensor> second_moments;
    std::vector<at::Tensor> steps;
  };

  void append(Lists& lists, std::size_t index, const at::Tensor& gradient) const {
    lists.values.push_back(masters_[index]);
    lists.gradients.push_back(gradient);
    lists.first_moments.push_back(first_moments_[index]);
    lists.second_moments.push_back(second_moments_[index]);
    lists.steps.push_back(steps_[index]);
  }

  void update(const Lists& lists) const {
    if (lists.values.empty()) return;
    at::_foreach_add_(lists.steps, 1.0);
    at::_fused_adamw_(lists.values, lists.gradients, lists.first_moments, lists.second_moments,
                      /*max_exp_avg_sqs=*/{}, lists.steps, settings_.learning_rate, settings_.beta1,
                      settings_.beta2, settings_.weight_decay, settings_.epsilon,
                      /*amsgrad=*/false, /*maximize=*/false);
  }

  void step_all() {
    Lists lists;
    for (std::size_t index = 0; index < parameters_.size(); ++index) {
      const at::Tensor& gradient = parameters_[index].grad();
      if (gradient.defined()) append(lists, index, gradient);
    }
    update(lists);
  }

  void step_in_one_pass() {
    fused::AdamWTensors tensors;
    for (std::size_t index = 0; index < parameters_.size(); ++index) {
      const at::Tensor& gradient = parameters_[index].grad();
      if (!gradient.defined()) continue;
      tensors.parameters.push_back(parameters_[index]);
      tensors.gradients.push_back(gradient.contiguous());
      tensors.values.push_back(masters_[index]);
      tensors.first_moments.push_back(first_moments_[index]);
      tensors.second_moments.push_back(second_moments_[index]);
      tensors.steps.push_back(steps_[index]);
    }
    if (tensors.steps.empty()) return;
    at::_foreach_add_(tensors.steps, 1.0);
    fused::adamw(tensors, {.learning_rate = settings_.learning_rate,
                           .beta1 = settings_.beta1,
                           .beta2 = settings_.beta2,
                           .epsilon = settings_.epsilon,
                           .weight_decay = settings_.weight_decay});
  }

  // Updates a single parameter, so that no more than one float32 gradient exists at a time.
  void step_through_master(std::size_t index) {
    const at::Tensor& gradient = parameters_[index].grad();
    if (!gradient.defined()) return;
    Lists lists;
    append(lists, index, gradient.to(at::kFloat));
    update(lists);
    if (parameters_[index].scalar_type() == at::kFloat) return;
    at::Tensor parameter = parameters_[index];
    parameter.copy_(masters_[index]);
  }

  std::vector<at::Tensor> parameters_;
  AdamWSettings settings_;
  Ops ops_;
  bool any_master_ = false;
  std::vector<at::Tensor> masters_;  // float32 master copies; a float32 parameter is its own master
  std::vector<at::Tensor> first_moments_;
  std::vector<at::Tensor> second_moments_;
  std::vector<at::Tensor> steps_;  // one 0-d float32 tensor per parameter, as the fused op requires
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerChoice& choice,
                                          std::vector<at::Tensor> parameters, Ops ops) {
  if (choice.kind == OptimizerKind::kNothing) return std::make_unique<NoOptimizer>();
  return std::make_unique<AdamW>(std::move(parameters), choice.settings, ops);
}

}  // namespace rematch
