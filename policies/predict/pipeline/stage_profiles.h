// Splits a measured profile of a whole model into profiles of its pipeline stages. The stages run
// the same ops as the whole model, so each op keeps its time.
#pragma once

#include <variant>
#include <vector>

#include "policies/base/rejected.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// `profile` belongs to `whole`, the trace of the model without a pipeline, with the same layout and
// micro-batches otherwise. Returns one profile for each stage. Times that belong to no op are
// divided by the number of ops, and those of the optimizer by the bytes of the parameters. Returns
// Rejected if the ops of the stages are not those of the whole model.
std::variant<std::vector<Profile>, Rejected> stage_profiles(
    const Profile& profile, const Trace& whole, const std::vector<const Trace*>& stages);

}  // namespace rematch
