// One training step of a real model of reduced size, with the ops it executes and the bytes it
// holds.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "harness/engine/recording.h"
#include "models/model.h"
#include "policies/trace/trace.h"
#include "tests/support/networks.h"

namespace rematch::testing {

struct ModelCase {
  std::string preset;
  std::map<std::string, std::int64_t> dimensions;
  std::string dtype = "float32";
};

// A model with its batch. Its parameters are the same in every instance. Installs the counting
// allocators.
struct ModelInstance {
  explicit ModelInstance(const ModelCase& which);
  Trace trace();  // traces a step; leaves no gradients behind

  ModelSpec spec;
  std::unique_ptr<Model> model;
  Batch batch;
};

struct ModelStep {
  Outcome outcome;                 // has no generator state, because no op draws random numbers
  std::map<std::string, int> ops;  // number of executed ops in all phases
  // bytes of the step, without the bytes allocated before the step
  std::int64_t after_forward_bytes;
  std::int64_t peak_bytes;
  int num_ops() const;
};

// Runs forward and backward. If `checkpoint` is null, runs without checkpointing.
ModelStep run_step(ModelInstance& instance, const Checkpoint* checkpoint);
ModelStep run_step(const ModelCase& which, const Plan& plan, Schedule schedule);

// Throws std::invalid_argument with the message if the policy is rejected.
Plan plan_for(const std::string& policy, const Trace& trace);

}  // namespace rematch::testing
