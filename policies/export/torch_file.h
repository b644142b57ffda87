// The Python file that runs a plan with torch alone.
#pragma once

#include <string>

#include "policies/export/call_place.h"
#include "policies/export/torch_regions.h"

namespace rematch {

// The file's first lines say where `place` calls it; `module_name` is the file's. The regions are
// the plan's. The step's prediction, for whoever checks a run, is in the file.
std::string torch_file(const Trace& trace, const Plan& plan, const TorchRegions& regions,
                       const CallPlace& place, const std::string& module_name);

}  // namespace rematch
