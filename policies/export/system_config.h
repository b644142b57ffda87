// Writes the lines of a training system's own configuration that select a mode equivalent to a
// plan. Such a mode must be listed in policies/catalogue/systems.h.
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

// Returns the configuration lines, preceded by comments. The comments say where the lines go and
// what else the mode does. Returns Rejected if no mode does what the plan does. The message then
// names the nearest mode and its first difference.
std::variant<std::string, Rejected> system_config(std::string_view target, const Trace& trace,
                                                  const Plan& plan);

// Says where in a training system's code to import the module that torch_file() writes, and how to
// call it. Used for plans that no mode of the system's own configuration can express.

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
