// Writes the Python file that runs a plan on torch_remat.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "policies/base/rejected.h"
#include "policies/export/system_config.h"
#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// A submodule of a checkpointed module that recompute skips. torch_remat calls it a saved region.
struct SavedPart {
  std::string name;  // "self_attn", relative to the module
  // whether, after the submodule, recompute runs an op that reads its result
  bool is_read_again = false;
  bool operator==(const SavedPart&) const = default;
};

struct RematModule {
  std::string module;  // "model.layers.0"
  std::vector<SavedPart> saved;
  bool operator==(const RematModule&) const = default;
};

// Returns the modules that the plan checkpoints, each with the submodules that recompute skips.
// Returns Rejected if torch_remat would run different ops or keep different bytes. torch_remat
// recomputes whole modules, skips only whole submodules, and restores no generator state.
// `schedule` is the schedule that the plan was made for. Throws std::invalid_argument if the plan
// was made for another model.
std::variant<std::vector<RematModule>, Rejected> remat_modules(const Trace& trace, const Plan& plan,
                                                               Schedule schedule);

// Returns the text of the Python file.
std::string remat_file(const Trace& trace, const Plan& plan,
                       const std::vector<RematModule>& modules, const CallPlace& place,
                       const std::string& module_name);

}  // namespace rematch
