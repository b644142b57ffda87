// Profiles for tests: times and bytes drawn at random for every op of a trace.
#pragma once

#include <cstdint>

#include "policies/trace/profile.h"

namespace rematch::testing {

// The same trace and seed give the same profile. Views take no time; equal layers differ.
Profile made_up_profile(const Trace& trace, std::uint32_t seed);

// The same with ops of one name taking the time of the first of them, so that equal layers are
// equal in time as well.
Profile with_equal_times(const Trace& trace, Profile profile);

}  // namespace rematch::testing
