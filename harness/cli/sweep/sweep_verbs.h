// The subcommands of `rematch sweep`, one per source file, and the functions that they share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "harness/cli/commands.h"
#include "harness/sweep/claims.h"
#include "harness/sweep/comparison_plan.h"

namespace rematch {

void add_sweep_plan(CLI::App& sweep, Action& action);
void add_sweep_run(CLI::App& sweep, Action& action);
void add_sweep_status(CLI::App& sweep, Action& action);
void add_sweep_merge(CLI::App& sweep, Action& action);
void add_sweep_emit(CLI::App& sweep, Action& action);

// Reads DIR/plan.json. Throws UsageError if the file is missing, is malformed, or was written by
// another version of this tool.
ComparisonPlan require_comparison_plan(const std::string& folder);

std::string plan_file_in(const std::string& folder);

// Returns a text such as "0f20eefb7109 --model llama_small --dim 32 --seed 0".
std::string comparison_words(const PlannedComparison& comparison);

// Returns an object that reads all claims of the plan and writes this process's claims.
Claims claims_of(const ComparisonPlan& plan, SweepFolder& folder);

}  // namespace rematch
