// Small networks, each with a property that checkpointing easily gets wrong. Each network can run
// plainly, under the engine, and under the closure oracle. All runs start from the same weights,
// input and generator state, so they can be compared bitwise.
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
  std::vector<Region> layers;            // applied one after another; layer i is scope "blocks.<i>"
  std::vector<at::Tensor> buffers = {};  // buffers to which the layers write
};

struct NamedNetwork {
  std::string name;
  std::function<Network()> make;
};

// Networks that must give bitwise equal results under every plan and schedule.
const std::vector<NamedNetwork>& hazard_networks();

// Two layers that run a backward pass inside backward, nested `depth` times.
NamedNetwork reentrant_network(int depth);

struct Outcome {
  at::Tensor loss;
  std::vector<at::Tensor>
      gradients;  // gradients of the parameters, then of the input if it is a leaf
  std::vector<at::Tensor> buffers;
  at::Tensor generator_state;
};

// Names the first difference. Returns an empty string if the outcomes are bitwise equal.
std::string first_difference(const Outcome& a, const Outcome& b);

// Returns the scalar loss that all runs use: a sum of the output's squares with fixed weights.
at::Tensor loss_of(const at::Tensor& output);

at::Tensor forward_plain(const Network& network);
// Runs forward inside the scopes of the blocks.
at::Tensor forward_with_scopes(const Network& network);
at::Tensor forward_closures(const Network& network, const ClosurePolicy& policy);

// These functions seed the generator, run forward and backward, and return the outcome.
Outcome run_plain(const NamedNetwork& named);
Outcome run_engine(const NamedNetwork& named, const Plan& plan, Schedule schedule,
                   OutsideCheck outside_check = OutsideCheck::kVersions);
Outcome run_closures(const NamedNetwork& named, ClosurePolicy policy);
Outcome outcome_of(const Network& network, const at::Tensor& loss);
void seed_generator();

Trace trace_of(const NamedNetwork& named);

// Makes a plan with one region for each block of the trace. `save(layer, op)` decides what to keep.
// Views and mutating ops are always recomputed. The recompute order is chosen as in resolve().
Plan plan_of_blocks(const Trace& trace, const std::function<bool(int layer, int op)>& save,
                    bool early_stop = true);

}  // namespace rematch::testing
