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

// A part of a checkpointed module that recompute skips. torch_remat calls it a saved region.
struct SavedPart {
  std::string name;            // "self_attn", relative to the module
  bool is_read_again = false;  // whether an op that runs again reads a result of the part
  bool operator==(const SavedPart&) const = default;
};

struct RematModule {
  std::string module;  // "model.layers.0"
  std::vector<SavedPart> saved;
  bool operator==(const RematModule&) const = default;
};

// Returns the modules that the plan checkpoints, each with its saved parts. Returns Rejected, with
// the layers, if torch_remat would not run the same ops and keep the same bytes. torch_remat runs a
// module again to its end and skips whole modules in it. It restores no generator state. `schedule`
// is the schedule that the plan was made for. Throws std::invalid_argument if the plan was made for
// another model.
std::variant<std::vector<RematModule>, Rejected> remat_modules(const Trace& trace, const Plan& plan,
                                                               Schedule schedule);

// Returns the text of the file, as torch_file() does.
std::string remat_file(const Trace& trace, const Plan& plan,
                       const std::vector<RematModule>& modules, const CallPlace& place,
                       const std::string& module_name);

}  // namespace rematch
