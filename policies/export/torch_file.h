// Writes the Python file that runs a plan with only torch.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "policies/base/rejected.h"
#include "policies/export/system_config.h"
#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// A plan in the form that torch.utils.checkpoint can run. It lists modules of the model by name,
// and for each module the ops whose results selective checkpointing keeps.
//
// How to checkpoint a region. Equal regions share one entry.
struct TorchRegionKind {
  bool early_stop = true;
  // true: recompute must restore the generator state from the start of forward
  bool draws_random = false;
  // names of the ops that a TorchDispatchMode sees; empty if nothing is saved
  std::vector<std::string> ops;
  std::vector<std::size_t> saved;  // indices into `ops` of the ops whose results are saved
  bool operator==(const TorchRegionKind&) const = default;
};

struct TorchRegion {
  std::string module;  // "model.layers.0"
  int kind = 0;
};

struct TorchRegions {
  std::vector<TorchRegionKind> kinds;
  std::vector<TorchRegion> regions;  // one region per module
};

// Returns the regions of the plan. Returns Rejected, with the region's name, if torch cannot run a
// region, because the region
// - is not a whole module, is recomputed on demand, or offloads,
// - writes to a tensor from outside, or has hidden effects, or
// - draws random numbers after a draw whose result is kept.
// `schedule` is the schedule that the plan was made for. Throws std::invalid_argument if the plan
// was made for another model.
std::variant<TorchRegions, Rejected> torch_regions(const Trace& trace, const Plan& plan,
                                                   Schedule schedule);

// Returns the text of the file. Its docstring says where to insert the call (`place`).
// `module_name` is the file's name as a Python module. `regions` must belong to the plan. The file
// also contains predicted bytes, so that a run can be checked against them.
std::string torch_file(const Trace& trace, const Plan& plan, const TorchRegions& regions,
                       const CallPlace& place, const std::string& module_name);

}  // namespace rematch
