// Flag values that several subcommands take.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "policies/plan/plan.h"
#ifdef REMATCH_LIBTORCH
#include "harness/run/optimizer.h"
#include "harness/run/turns.h"
#endif

namespace rematch {

// "whole_region", "on_demand" or "both". Throws UsageError.
std::vector<Schedule> parse_schedules(const std::string& text);

// "90s", "10min", "500ms", "1h". Throws UsageError: the unit is part of the value.
std::chrono::milliseconds parse_duration(const std::string& text);

// "2%", "0.5%", as a fraction above 0 and up to 1. Throws UsageError.
double parse_percent(const std::string& text);

#ifdef REMATCH_LIBTORCH
// "4" or "4:8", and the precision that ends the blocks in between. Throws UsageError.
BlockRule parse_blocks(const std::string& blocks, const std::string& precision);

OptimizerChoice parse_optimizer(const std::string& text);
#endif

}  // namespace rematch
