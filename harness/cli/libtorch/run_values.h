// Flag values of subcommands that run models.
#pragma once

#include <string>

#include "harness/cli/flags/shared_flags.h"
#include "harness/run/comparison.h"
#include "harness/run/timing/turns.h"
#include "harness/training/optimizer.h"

namespace rematch {

// "4" or "4:8", and the precision that ends the rounds in between. Throws UsageError.
RoundRule parse_rounds(const std::string& rounds, const std::string& precision);

OptimizerChoice parse_optimizer(const std::string& text);

// Sets steps, rounds, seed and child processes as the flags say. Throws UsageError.
void measure_by(const MeasureFlags& flags, ComparisonSettings& settings);

// Device, rounding of sizes, and allocator; empty: as the environment says. Throws UsageError.
void run_on(const std::string& device, const std::string& allocator, VariantSettings& settings);

}  // namespace rematch
