// The lines of a training system's own configuration that do what a plan does, where one of the
// system's modes does. The modes are those of policies/catalogue/systems.h.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// "transformers", "torchtitan", ...: in the order that people see.
std::vector<std::string_view> config_targets();

// The lines, behind comments that say where they go and what else the mode does. Rejected: no mode
// does what the plan does; the message has the nearest one and its first difference.
std::variant<std::string, Rejected> system_config(std::string_view target, const Trace& trace,
                                                  const Plan& plan);

// The place of torch_file()'s file in a training system: what no mode of its configuration does.

struct CallPlace {
  std::string_view target;  // "torch", "transformers", ...
  std::string_view where;   // the call goes: sentences that end in a colon
  std::string_view lines;   // of the call; {M} is the file's module
};

// Null for a system that runs its own modes alone, megatron, and for what is no target.
const CallPlace* find_call_place(std::string_view target);

// The place and the call, for a docstring: sentences, an empty line, the lines indented.
std::string call_text(const CallPlace& place, const std::string& module_name);

}  // namespace rematch
