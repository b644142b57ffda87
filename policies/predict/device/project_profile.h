// Estimates the profile of a model that does not fit on this machine, from a measured profile of
// the same model with fewer layers. Bytes come from the large model's own trace.
#pragma once

#include <variant>

#include "policies/base/rejected.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// `measured` is the profile of `few`; `many` is the same model with more layers. Every layer takes
// as long as a measured layer with the same ops and shapes. The first layers use the first measured
// layers, the last layers use the last measured layers, and all layers in between use the middle
// measured layer. Time between ops scales with the number of ops, and the optimizer's time with the
// number of parameter elements. Returns Rejected if a layer has no measured counterpart.
std::variant<Profile, Rejected> project_profile(const Profile& measured, const Trace& few,
                                                const Trace& many, int measured_layers);

}  // namespace rematch
