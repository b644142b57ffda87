// Plans as files, "rematch.plan/1.0". A file lists each region type once, and the regions that
// refer to the types. A type has one object per op, which people can read and port by hand.
#pragma once

#include "policies/base/json_fwd.h"
#include "policies/plan/plan.h"

namespace rematch {

Json plan_to_json(const Plan& plan);

// Throws FormatError with the JSON path. Ignores unknown keys, and the plan's `layers`, which is
// only for people.
Plan plan_from_json(const Json& json);

// Reads and writes a plan as a member of a record (record_fields.h).
Json to_value(const Plan& plan);
void read_value(const JsonField& field, Plan& plan);

// Returns the JSON that plan_sha256 hashes: the plan with region types of equal effect merged and
// numbered in order of first use.
Json plan_effect_json(const Plan& plan);

}  // namespace rematch
