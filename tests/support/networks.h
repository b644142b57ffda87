// Small networks, each with a property that checkpointing gets wrong easily, and the three ways to
// run one: plainly, under the engine, under the closure oracle. Runs start from the same weights,
// input and generator state, so their bits can be compared.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "harness/engine/recording.h"
#include "policies/trace/trace.h"
#include "tests/support/closure_checkpoint.h"

namespace rematch::testing {

struct Network {
  std::vector<at::Tensor> parameters;  // leaves that require grad
  at::Tensor input;
  std::vector<Region> layers;            // applied in turn; layer i is scope "blocks.<i>"
  std::vector<at::Tensor> buffers = {};  // that layers write to
};

struct NamedNetwork {
  std::string name;
  std::function<Network()> make;
};

// Every network that must give equal bits under any plan and schedule.
const std::vector<NamedNetwork>& hazard_networks();

// Two layers, each of which runs a backward inside its backward, and another inside that, `depth`
// times.
NamedNetwork reentrant_network(int depth);

struct Outcome {
  at::Tensor loss;
  std::vector<at::Tensor> gradients;  // of the parameters, then of the input if it is a leaf
  std::vector<at::Tensor> buffers;
  at::Tensor generator_state;
};

// Empty if equal to the bit; else says what differs first.
std::string first_difference(const Outcome& a, const Outcome& b);

// The scalar that all runs differentiate: a fixed weighting of the output's squares.
at::Tensor loss_of(const at::Tensor& output);

at::Tensor forward_plain(const Network& network);
// Opens the block scopes; whoever listens sees them.
at::Tensor forward_with_scopes(const Network& network);
at::Tensor forward_closures(const Network& network, const ClosurePolicy& policy);

// Seeds the generator, runs forward and backward, collects.
Outcome run_plain(const NamedNetwork& named);
Outcome run_engine(const NamedNetwork& named, const Plan& plan, Schedule schedule,
                   OutsideCheck outside_check = OutsideCheck::kVersions);
Outcome run_closures(const NamedNetwork& named, ClosurePolicy policy);
Outcome outcome_of(const Network& network, const at::Tensor& loss);
void seed_generator();

Trace trace_of(const NamedNetwork& named);

// A plan with one region for each block of the trace; `save(layer, op)` says what is kept. Ops that
// cannot be kept (views, mutating ops) are recomputed whatever it says. Order chosen as resolve()
// does.
Plan plan_of_blocks(const Trace& trace, const std::function<bool(int layer, int op)>& save,
                    bool early_stop = true);

}  // namespace rematch::testing
