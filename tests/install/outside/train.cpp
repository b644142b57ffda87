// A user's program against the installed library: two layers, one step, with and without
// checkpointing. Returns 0 if loss and gradients are bitwise equal.
#include <ATen/core/Tensor.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>

#include <iostream>
#include <optional>
#include <variant>
#include <vector>

#include "harness/engine/recording.h"
#include "harness/trace/tracer.h"
#include "models/scope/scope.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"

namespace {

struct Network {
  at::Tensor input = at::randn({8, 16});
  std::vector<at::Tensor> weights = {at::randn({16, 16}).requires_grad_(),
                                     at::randn({16, 16}).requires_grad_()};

  at::Tensor loss() const {
    at::Tensor x = input;
    for (std::size_t layer = 0; layer < weights.size(); ++layer) {
      const rematch::Scope block("blocks", static_cast<int>(layer));
      x = at::gelu(at::mm(x, weights[layer]));
    }
    const rematch::Scope scope("loss");
    return at::mean(x);
  }
};

// Returns the loss and then each gradient.
std::vector<at::Tensor> step(const Network& network, const rematch::Plan* plan) {
  for (const at::Tensor& weight : network.weights) weight.mutable_grad() = at::Tensor();
  std::optional<rematch::Recording> recording;
  if (plan != nullptr) {
    recording.emplace(rematch::Checkpoint(*plan, rematch::Schedule::kOnDemand));
  }
  const at::Tensor loss = network.loss();
  if (recording) recording->finish();
  loss.backward();
  std::vector<at::Tensor> results = {loss.detach()};
  for (const at::Tensor& weight : network.weights) results.push_back(weight.grad());
  return results;
}

}  // namespace

int main() {
  const Network network;
  const rematch::Trace trace = rematch::record_trace([&] { return network.loss(); });
  const auto policy = std::get<rematch::Policy>(rematch::parse_policy("full"));
  const auto plan = std::get<rematch::Plan>(rematch::resolve(policy, trace));

  const std::vector<at::Tensor> kept = step(network, nullptr);
  const std::vector<at::Tensor> recomputed = step(network, &plan);
  for (std::size_t index = 0; index < kept.size(); ++index) {
    if (!at::equal(kept[index], recomputed[index])) {
      std::cerr << "result " << index << " differs from the run without checkpointing\n";
      return 1;
    }
  }
  std::cout << "loss and " << network.weights.size() << " gradients are bit-equal; plan of "
            << plan.regions.size() << " regions\n";
  return 0;
}
