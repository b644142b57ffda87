// Random plans for property tests. Regions begin and end at random borders of scopes, and have
// random save sets.
#pragma once

#include <cstdint>

#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch::testing {

// The same trace and seed give the same plan. A layer may have no region, be one region, be split
// at its inner scopes, or be joined with its neighbours. Every region has its own type.
Plan random_plan(const Trace& trace, std::uint32_t seed);

// Returns a random plan that saves, recomputes and offloads ops. Some regions also offload inputs.
Plan random_offload_plan(const Trace& trace, std::uint32_t seed);

}  // namespace rematch::testing
