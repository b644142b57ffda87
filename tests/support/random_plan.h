// Random plans for property tests: regions of random extent at scope borders, with random save
// sets.
#pragma once

#include <cstdint>

#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch::testing {

// The same trace and seed give the same plan: some layers left alone, some a region each, some cut
// at the scopes inside them, some joined with their neighbours; every region of a type of its own.
Plan random_plan(const Trace& trace, std::uint32_t seed);

// The same with three treatments, and some inputs of regions on the host too.
Plan random_offload_plan(const Trace& trace, std::uint32_t seed);

}  // namespace rematch::testing
