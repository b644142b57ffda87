// A model with its batch, its trace and plans for it: what benchmarks step.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "harness/engine/recording.h"
#include "models/model.h"
#include "policies/trace/trace.h"

namespace rematch::benchmarks {

using Overrides = std::map<std::string, std::int64_t>;

// The step in which an engine's own cost shows most: kernels of a few hundred bytes.
inline const Overrides kDispatchBound = {{"dim", 16},   {"heads", 2}, {"kv_heads", 2}, {"ffn", 32},
                                         {"layers", 8}, {"batch", 1}, {"tokens", 4}};

class Workload {
 public:
  // On the CPU. Exits with one line if the preset or a dimension is refused.
  Workload(const std::string& preset, const Overrides& overrides);

  // Null for "none". Exits with one line if the policy is refused.
  std::unique_ptr<Checkpoint> checkpoint(const std::string& policy, Schedule schedule);

  // Forward and backward; gradients are let go, as a training step does. Null: no checkpointing.
  void step(const Checkpoint* checkpoint);
  void forward_backward(const Checkpoint* checkpoint);
  void clear_gradients();

 private:
  std::unique_ptr<Model> model_;
  Batch batch_;
  Trace trace_;
};

}  // namespace rematch::benchmarks
