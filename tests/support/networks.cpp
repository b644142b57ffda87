#include "tests/support/networks.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstring>
#include <mutex>

#include "harness/trace/tracer.h"
#include "models/scope/scope.h"
#include "policies/predict/region/late_copies.h"
#include "policies/predict/region/order.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

constexpr std::uint64_t kSeed = 20261120;

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor x = a.contiguous();
  const at::Tensor y = b.contiguous();
  return std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

std::string first_difference(const std::string& what, const std::vector<at::Tensor>& a,
                             const std::vector<at::Tensor>& b) {
  if (a.size() != b.size()) return "number of " + what + "s";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same_bits(a[i], b[i])) return what + " " + std::to_string(i);
  }
  return "";
}

struct Reentrant : torch::autograd::Function<Reentrant> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x,
                            std::int64_t depth) {
    context->saved_data["depth"] = depth;
    context->save_for_backward({x});
    return at::mul(x, 2.0);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const std::int64_t depth = context->saved_data["depth"].toInt();
    const at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_();
    const at::AutoGradMode grad_mode(true);
    const at::Tensor inner = depth == 0 ? at::mul(x, 2.0) : Reentrant::apply(x, depth - 1);
    at::sum(inner).backward();
    return {at::mul(gradients[0], x.grad()), at::Tensor()};
  }
};

}  // namespace

NamedNetwork reentrant_network(int depth) {
  return {"reentrant", [depth] {
            Network network;
            network.input = at::ones({4, 4}).requires_grad_();
            const at::Tensor w = at::ones({4, 4}).mul_(0.25).requires_grad_();
            network.parameters = {w};
            for (int i = 0; i < 2; ++i) {
              network.layers.push_back([w, depth](const at::Tensor& x) {
                return Reentrant::apply(at::sin(at::mm(x, w)), depth);
              });
            }
            return network;
          }};
}

void seed_generator() {
  at::Generator generator = at::globalContext().defaultGenerator(c10::kCPU);
  std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(kSeed);
}

std::string first_difference(const Outcome& a, const Outcome& b) {
  if (!same_bits(a.loss, b.loss)) return "loss";
  const std::string gradient = first_difference("gradient", a.gradients, b.gradients);
  if (!gradient.empty()) return gradient;
  const std::string buffer = first_difference("buffer", a.buffers, b.buffers);
  if (!buffer.empty()) return buffer;
  if (!same_bits(a.generator_state, b.generator_state)) return "generator state";
  return "";
}

at::Tensor loss_of(const at::Tensor& output) {
  const at::Tensor values =
      output.to(output.scalar_type() == at::kDouble ? at::kDouble : at::kFloat);
  const at::Tensor weights =
      at::arange(1, values.numel() + 1, values.options()).div(values.numel()).view(values.sizes());
  return at::sum(at::mul(at::mul(values, values), weights));
}

at::Tensor forward_plain(const Network& network) {
  at::Tensor x = network.input;
  for (const Region& layer : network.layers) x = layer(x);
  return x;
}

at::Tensor forward_with_scopes(const Network& network) {
  at::Tensor x = network.input;
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const Scope block("blocks", static_cast<int>(i));
    x = network.layers[i](x);
  }
  return x;
}

at::Tensor forward_closures(const Network& network, const ClosurePolicy& policy) {
  at::Tensor x = network.input;
  for (const Region& layer : network.layers) x = closure_checkpoint(layer, x, policy);
  return x;
}

Outcome outcome_of(const Network& network, const at::Tensor& loss) {
  Outcome outcome{.loss = loss.detach()};
  for (const at::Tensor& parameter : network.parameters) {
    outcome.gradients.push_back(parameter.grad());
  }
  if (network.input.requires_grad()) outcome.gradients.push_back(network.input.grad());
  for (const at::Tensor& buffer : network.buffers) outcome.buffers.push_back(buffer.clone());
  outcome.generator_state = at::globalContext().defaultGenerator(c10::kCPU).get_state();
  return outcome;
}

Outcome run_plain(const NamedNetwork& named) {
  seed_generator();
  const Network network = named.make();
  const at::Tensor loss = loss_of(forward_plain(network));
  loss.backward();
  return outcome_of(network, loss);
}

Outcome run_engine(const NamedNetwork& named, const Plan& plan, Schedule schedule,
                   OutsideCheck outside_check) {
  seed_generator();
  const Network network = named.make();
  Recording recording(strict(plan, schedule, outside_check));
  const at::Tensor loss = loss_of(forward_with_scopes(network));
  loss.backward();
  recording.finish();
  return outcome_of(network, loss);
}

Outcome run_closures(const NamedNetwork& named, ClosurePolicy policy) {
  seed_generator();
  const Network network = named.make();
  policy.buffers.insert(policy.buffers.end(), network.buffers.begin(), network.buffers.end());
  const at::Tensor loss = loss_of(forward_closures(network, policy));
  loss.backward();
  return outcome_of(network, loss);
}

Trace trace_of(const NamedNetwork& named) {
  seed_generator();
  const Network network = named.make();
  return record_trace([&] { return loss_of(forward_with_scopes(network)); });
}

Plan plan_of_blocks(const Trace& trace, const std::function<bool(int layer, int op)>& save,
                    bool early_stop) {
  Plan plan;
  plan.policy = "test";
  std::vector<OpRange> ranges;
  for (const TracedBlock& block : trace.blocks) {
    const TracedScope& scope = trace.scopes[block.scope];
    RegionType type{.early_stop = early_stop};
    ranges.push_back({scope.first_op, scope.end_op});
    for (OpId op = scope.first_op; op < scope.end_op; ++op) {
      const TracedOp& traced = trace.ops[op];
      const bool can_save = !traced.is_view && traced.writes.empty() && !traced.outputs.empty();
      PlannedOp planned{.name = traced.name};
      if (can_save && save(block.index, op - scope.first_op)) planned.treatment = Treatment::kSave;
      type.ops.push_back(planned);
    }
    choose_order(trace, scope.first_op, scope.end_op, type);
    plan.regions.push_back({.first_scope = scope.path,
                            .last_scope = scope.path,
                            .type = static_cast<int>(plan.types.size()),
                            .layers = {block.index}});
    plan.types.push_back(std::move(type));
  }
  plan.watches_writes = has_late_copies(trace, ranges);
  return plan;
}

}  // namespace rematch::testing
