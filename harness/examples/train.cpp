// Trains two layers for one step: first with everything kept, then with both layers recomputed.
// Ends with exit code 0 if the loss and every gradient have the same bits.
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>

#include <iostream>
#include <variant>
#include <vector>

#include "harness/engine/recording.h"
#include "harness/trace/tracer.h"
#include "models/scope/scope.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"

// Runs forward. The scope gives the layer its name in policies and reports.
at::Tensor loss_of(const std::vector<at::Tensor>& weights, at::Tensor x) {
  for (std::size_t layer = 0; layer < weights.size(); ++layer) {
    const rematch::Scope block("blocks", static_cast<int>(layer));
    x = at::gelu(at::mm(x, weights[layer]));
  }
  const rematch::Scope scope("loss");
  return at::mean(x);
}

// Returns the loss, followed by each gradient.
std::vector<at::Tensor> backward(const std::vector<at::Tensor>& weights, const at::Tensor& loss) {
  for (const at::Tensor& weight : weights) weight.mutable_grad() = at::Tensor();
  loss.backward();
  std::vector<at::Tensor> results = {loss.detach()};
  for (const at::Tensor& weight : weights) results.push_back(weight.grad());
  return results;
}

int main() {
  const at::Tensor input = at::randn({8, 16});
  const std::vector<at::Tensor> weights = {at::randn({16, 16}).requires_grad_(),
                                           at::randn({16, 16}).requires_grad_()};

  // A trace lists the ops of one step, forward and backward. A policy and a trace make a plan.
  const rematch::Trace trace = rematch::record_trace([&] { return loss_of(weights, input); });
  const auto policy = std::get<rematch::Policy>(rematch::parse_policy("full"));
  const auto plan = std::get<rematch::Plan>(rematch::resolve(policy, trace));

  const std::vector<at::Tensor> kept = backward(weights, loss_of(weights, input));

  const rematch::Checkpoint checkpoint(plan, rematch::Schedule::kOnDemand);  // once
  const rematch::Recording recording(checkpoint);                            // one per step
  const std::vector<at::Tensor> recomputed = backward(weights, loss_of(weights, input));

  for (std::size_t index = 0; index < kept.size(); ++index) {
    if (!at::equal(kept[index], recomputed[index])) return 1;
  }
  std::cout << "loss and " << weights.size() << " gradients are bit-equal; plan of "
            << plan.regions.size() << " regions\n";
}
