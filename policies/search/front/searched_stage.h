// The input of a search: a whole model, or one stage of a pipeline.
#pragma once

#include <optional>

#include "policies/plan/plan.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// The references must outlive the search. `none` is the stage's plan of policy `none`.
struct SearchedStage {
  const Trace& trace;
  const Profile& profile;
  std::optional<Plan> none;
};

}  // namespace rematch
