// The Python file that runs a plan with torch alone.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "policies/export/system_config.h"
#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// A plan as torch.utils.checkpoint can run it: modules of the model by name, and of each the ops
// whose results selective checkpointing keeps, by index. Refuses what it cannot run with the same
// ops, bytes and bits.

// The content that equal regions share.
struct TorchRegionKind {
  bool early_stop = true;
  bool draws_random = false;       // so that recompute begins with forward's generator state
  std::vector<std::string> ops;    // as a dispatch mode sees them; empty where nothing is saved
  std::vector<std::size_t> saved;  // indices into ops
  bool operator==(const TorchRegionKind&) const = default;
};

struct TorchRegion {
  std::string module;  // "model.layers.0"
  int kind = 0;
};

struct TorchRegions {
  std::vector<TorchRegionKind> kinds;
  std::vector<TorchRegion> regions;  // each module once
};

// Rejected, with the region's name: one that is no whole module, is recomputed on demand, offloads,
// writes to a tensor from outside, or draws again behind a draw that it keeps. `schedule` is what
// the plan was made for. Throws std::invalid_argument if the plan was made for another model.
std::variant<TorchRegions, Rejected> torch_regions(const Trace& trace, const Plan& plan,
                                                   Schedule schedule);

// The file's first lines say where `place` calls it; `module_name` is the file's. The regions are
// the plan's. The step's prediction, for whoever checks a run, is in the file.
std::string torch_file(const Trace& trace, const Plan& plan, const TorchRegions& regions,
                       const CallPlace& place, const std::string& module_name);

}  // namespace rematch
