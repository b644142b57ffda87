#include "harness/training/stage.h"

#include <ATen/ops/empty.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "kernels/libtorch/versions.h"

namespace rematch {
namespace {

// The first node of a stage's graph: it takes the gradient of the stage's input.
class TakeGradient final : public torch::autograd::Node {
 public:
  explicit TakeGradient(std::function<void(const at::Tensor&)> take) : take_(std::move(take)) {}

 private:
  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    const torch::autograd::variable_list own = std::move(gradients);
    take_(own.at(0));
    return {};
  }

  std::function<void(const at::Tensor&)> take_;
};

// Allocates without an op that observers or tracers see.
at::Tensor make_unseen(const std::vector<std::int64_t>& sizes, const at::TensorOptions& options) {
  const c10::impl::ExcludeDispatchKeyGuard unseen(c10::DispatchKey::Fake);
  return at::empty(sizes, options);
}

}  // namespace

void StageLink::receive(at::Tensor& tensor, Way /*way*/, std::int64_t /*micro_batch*/) {
  if (tensor.is_meta()) return;
  const c10::impl::ExcludeDispatchKeyGuard unseen(c10::DispatchKey::Fake);
  const at::NoGradGuard no_grad;
  tensor.zero_();
}

at::Tensor make_stage_input(const std::vector<std::int64_t>& sizes,
                            const at::TensorOptions& options,
                            std::function<void(const at::Tensor& gradient)> take) {
  at::Tensor input = make_unseen(sizes, options);
  torch::autograd::set_history(input, libtorch::make_node<TakeGradient>(std::move(take)));
  return input;
}

StageOutput::StageOutput(const at::Tensor& output)
    : edge_(torch::autograd::impl::gradient_edge(output)),
      sizes_(output.sizes().vec()),
      options_(output.options()) {}

at::Tensor StageOutput::make_gradient() const { return make_unseen(sizes_, options_); }

void StageOutput::backward(const at::Tensor& gradient) {
  torch::autograd::edge_list roots;
  roots.push_back(std::move(edge_));
  torch::autograd::Engine::get_default_engine().execute(roots, {gradient}, /*keep_graph=*/false,
                                                        /*create_graph=*/false,
                                                        /*accumulate_grad=*/true);
}

}  // namespace rematch
