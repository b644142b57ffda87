// The lines of a training system's own configuration that do what a plan does, where one of the
// system's modes does. The modes are those of policies/catalogue/systems.h.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/plan/rejected.h"
#include "policies/trace/trace.h"

namespace rematch {

// "transformers", "torchtitan", ...: in the order that people see.
std::vector<std::string_view> config_targets();

// The lines, behind comments that say where they go and what else the mode does. Rejected: no mode
// does what the plan does; the message has the nearest one and its first difference.
std::variant<std::string, Rejected> system_config(std::string_view target, const Trace& trace,
                                                  const Plan& plan);

}  // namespace rematch
