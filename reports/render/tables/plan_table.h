// A plan as text: the checkpointed layers, the treatment of each op with its reason, and the total
// bytes and recomputed ops. policies/catalogue/describe.h gives the same information as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// `note` is the policy's note, or empty. Both functions throw std::invalid_argument if the plan was
// made for a different model than the trace.
std::string plan_to_text(const Plan& plan, const Trace& trace, std::string_view note,
                         std::size_t width);
// Shows totals, and only the ops that each kind of region keeps.
std::string kept_to_text(const Plan& plan, const Trace& trace, std::string_view note,
                         std::size_t width);

}  // namespace rematch
