// Describes what a plan does to each layer and op, as JSON and as one line.
#pragma once

#include <string>
#include <string_view>

#include "policies/base/json_fwd.h"
#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// Returns the effects of a plan as JSON: the checkpointed layers, the treatment of each op with its
// reason, the total bytes, and the number of recomputed ops. reports/render/tables/plan_table.h
// prints the JSON as a table. `note` is the policy's note, or empty. Throws std::invalid_argument
// if the plan was not made for the trace's model.
Json describe_json(const Plan& plan, const Trace& trace, std::string_view note = "");

// Returns for example "nth_first(2), 8 layers: checkpoints 0 2 4 6, keeps 1 3 5 7".
std::string describe_layers(const Plan& plan, const Trace& trace);

}  // namespace rematch
