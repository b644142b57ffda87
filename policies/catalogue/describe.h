// A plan's effects, as JSON: which layers are checkpointed and kept, what happens to each op and
// why, and the bytes and recomputed ops in total. For people: reports/render/tables/plan_table.h.
#pragma once

#include <string>
#include <string_view>

#include "policies/base/json_fwd.h"
#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// `note` is the policy's, where the policy is at hand. Throws std::invalid_argument if the plan was
// made for another model than the trace.
Json describe_json(const Plan& plan, const Trace& trace, std::string_view note = "");

// "nth_first(2), 8 layers: checkpoints 0 2 4 6, keeps 1 3 5 7"
std::string describe_layers(const Plan& plan, const Trace& trace);

}  // namespace rematch
