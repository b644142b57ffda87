// A measured profile of a model with few layers, as the profile of the same model with many: a
// model that this machine cannot hold is timed layer by layer, and its bytes are those of its own
// trace.
#pragma once

#include <variant>

#include "policies/plan/plan.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// `measured` is of `few`; `many` is of the same model, with more layers. Every layer takes as long
// as a measured one of the same ops and shapes: the first and last ones as those at the same
// distance from the end, the ones between as the middle. What a step takes between ops grows as the
// number of ops, the optimizer as the number of its parameters' elements. Rejected: a layer is like
// no measured one.
std::variant<Profile, Rejected> project_profile(const Profile& measured, const Trace& few,
                                                const Trace& many, int measured_layers);

}  // namespace rematch
