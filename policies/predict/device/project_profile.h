// Turns a measured profile of a model with few layers into a profile of the same model with many
// layers. In this way, a model that does not fit on this machine can be timed. The bytes of the
// large model come from its own trace.
#pragma once

#include <variant>

#include "policies/base/rejected.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// `measured` belongs to `few`; `many` is the same model with more layers. Every layer takes as long
// as a measured layer with the same ops and shapes. The first and last layers use the measured
// layer at the same distance from the same end. The other layers use the middle measured layer.
// Time between ops scales with the number of ops, and the optimizer's time with the number of
// parameter elements. Returns Rejected if a layer has no measured counterpart.
std::variant<Profile, Rejected> project_profile(const Profile& measured, const Trace& few,
                                                const Trace& many, int measured_layers);

}  // namespace rematch
