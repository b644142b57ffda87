// Profiles for tests, with random times and bytes for every op of a trace.
#pragma once

#include <cstdint>

#include "policies/trace/profile.h"

namespace rematch::testing {

// The same trace and seed give the same profile. Views take no time. Equal layers get different
// times.
Profile made_up_profile(const Trace& trace, std::uint32_t seed);

// Gives all ops of one name the time of the first op of that name, so that equal layers take equal
// time.
Profile with_equal_times(const Trace& trace, Profile profile);

}  // namespace rematch::testing
