// Plans that the command line names: a plan file, or a point of a front, "front.json#3".
#pragma once

#include <string>

#include "policies/plan/plan.h"

namespace rematch {

// Throws UsageError, or FormatError where the file is at fault.
Plan require_plan(const std::string& name);

}  // namespace rematch
