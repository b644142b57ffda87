// The model that a benchmark runs, with its batch, trace and plans.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "harness/engine/recording.h"
#include "models/model.h"
#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch::benchmarks {

using Overrides = std::map<std::string, std::int64_t>;

// A step in which the engine's own cost dominates, because kernels process only a few hundred
// bytes.
inline const Overrides kDispatchBound = {{"dim", 16},   {"heads", 2}, {"kv_heads", 2}, {"ffn", 32},
                                         {"layers", 8}, {"batch", 1}, {"tokens", 4}};

class Workload {
 public:
  // Makes the model on the CPU. Exits with a one-line message if the preset or a dimension is
  // rejected.
  Workload(const std::string& preset, const Overrides& overrides);

  // Exits with a one-line message if the policy is rejected.
  Plan plan(const std::string& policy);

  // Returns null for "none". Exits with a one-line message if the policy is rejected.
  std::unique_ptr<Checkpoint> checkpoint(const std::string& policy, Schedule schedule);

  // Runs forward and backward and then frees the gradients, as a training step does. If
  // `checkpoint` is null, runs without checkpointing.
  void step(const Checkpoint* checkpoint);
  void forward_backward(const Checkpoint* checkpoint);
  void clear_gradients();

 private:
  std::unique_ptr<Model> model_;
  Batch batch_;
  Trace trace_;
};

}  // namespace rematch::benchmarks
