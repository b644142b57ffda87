// Modules that recompute_modules, or a system's spelling of it, names and a model lacks. Inside
// this folder only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/plan/policy.h"
#include "policies/trace/trace.h"

namespace rematch {

// Is it the very policy that its name spells. A policy file has a name that spells none, or is it.
bool is_what_its_name_says(const Policy& policy);

// As recompute_modules, or a system's spelling of it, names them; none if the policy is another.
std::vector<std::string> modules_named_by(const Policy& policy);

// One line: which of them the model lacks, and which modules it has. Nothing if it lacks none, or
// if the policy is another.
std::optional<std::string> missing_modules(const Policy& policy, const Trace& trace);

}  // namespace rematch
