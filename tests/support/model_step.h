// One training step of a real, reduced model, with what it executes and holds.
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

// A model with its batch; parameters are the same each time. Installs counting allocators.
struct ModelInstance {
  explicit ModelInstance(const ModelCase& which);
  Trace trace();  // leaves no gradients

  ModelSpec spec;
  std::unique_ptr<Model> model;
  Batch batch;
};

struct ModelStep {
  Outcome outcome;                   // without a generator state: nothing is drawn
  std::map<std::string, int> ops;    // executed, all phases
  std::int64_t after_forward_bytes;  // above what was held before the step
  std::int64_t peak_bytes;
  int num_ops() const;
};

// Forward and backward; null: no checkpointing.
ModelStep run_step(ModelInstance& instance, const Checkpoint* checkpoint);
ModelStep run_step(const ModelCase& which, const Plan& plan, Schedule schedule);

// Throws std::invalid_argument with the message if the policy is rejected.
Plan plan_for(const std::string& policy, const Trace& trace);

}  // namespace rematch::testing
