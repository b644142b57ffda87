// The verbs of `rematch sweep`, each in its file, and what they share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "harness/cli/commands.h"
#include "harness/sweep/comparison_plan.h"

namespace rematch {

void add_sweep_plan(CLI::App& sweep, Action& action);

// DIR/plan.json. Throws UsageError: none there, no plan, or of another version of this tool.
ComparisonPlan require_comparison_plan(const std::string& folder);

std::string plan_file_in(const std::string& folder);

}  // namespace rematch
