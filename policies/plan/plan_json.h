// Plans as files, "rematch.plan/1.0": each region type once, with an object per op that people can
// read and port by hand, and the regions that refer to them.
#pragma once

#include "policies/base/json_fwd.h"
#include "policies/plan/plan.h"

namespace rematch {

Json plan_to_json(const Plan& plan);

// Throws FormatError with the JSON path. Ignores what is there for people (`layers` of the whole
// plan) and unknown keys.
Plan plan_from_json(const Json& json);

// As members of a record (record_fields.h).
Json to_value(const Plan& plan);
void read_value(const JsonField& field, Plan& plan);

// The text that plan_sha256 hashes: the plan with types of equal effect merged and numbered by
// first use.
Json plan_effect_json(const Plan& plan);

}  // namespace rematch
