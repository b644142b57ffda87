// Random plans for property tests. Regions begin and end at random borders of scopes, and have
// random save sets.
#pragma once

#include <cstdint>

#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch::testing {

// The same trace and seed give the same plan. Some layers have no region, some are one region each,
// some are split at their inner scopes, and some are joined with their neighbours. Every region has
// its own type.
Plan random_plan(const Trace& trace, std::uint32_t seed);

// Returns a random plan that saves, recomputes and offloads ops. Some regions also offload inputs.
Plan random_offload_plan(const Trace& trace, std::uint32_t seed);

}  // namespace rematch::testing
