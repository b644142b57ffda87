// Writes configuration lines for a training system that select a mode equivalent to a plan. Modes
// are listed in policies/catalogue/systems.h.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/base/rejected.h"
#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// Returns the names of the systems, such as "transformers" and "torchtitan", in display order.
std::vector<std::string_view> config_targets();

// Returns the configuration lines with comments. The comments say where the lines belong and how
// the mode differs from the plan. Returns Rejected if no mode is equivalent to the plan. The
// message then names the nearest mode and its first difference.
std::variant<std::string, Rejected> system_config(std::string_view target, const Trace& trace,
                                                  const Plan& plan);

// How to call the module that torch_file() writes, and where in a training system's code. Used for
// plans that no mode of the system can express.

struct CallPlace {
  std::string_view target;  // "torch", "transformers", ...
  std::string_view where;   // sentences that say where the call goes, ending in a colon
  std::string_view lines;   // the import and the call; {M} is replaced by the module's name
};

// Returns null for an unknown target, and for megatron, which cannot call a Python file.
const CallPlace* find_call_place(std::string_view target);

// Returns text for a docstring: sentences that say where the call goes, an empty line, and the
// indented import and call.
std::string call_text(const CallPlace& place, const std::string& module_name);

}  // namespace rematch
