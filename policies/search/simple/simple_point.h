// Finds the plan of a simple form (simple_form.h) that is shown next to a front.
#pragma once

#include <optional>

#include "policies/base/bytes.h"
#include "policies/search/front/front.h"
#include "policies/search/front/front_json.h"
#include "policies/search/region/span_options.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Returns the memory that a search may use: the budget or, if there is no budget, the device's
// memory for tensors. Returns nullopt if the record limits the slowdown instead, or if neither
// memory is known.
std::optional<Bytes> limit_of(const FrontRecord& record);

// Finds the best plan of a simple form. The best plan is the plan with the lowest peak within the
// record's largest slowdown, else the fastest plan within limit_of(), else the fastest plan within
// the peak of the knee. If no plan fits, returns the plan with the lowest peak. `exact` is the
// search that made the record's front. Returns nullopt if the search was interrupted.
std::optional<SimplePoint> find_simple(const Trace& trace, const Profile& profile,
                                       const SearchSpace& space, const FrontRecord& record,
                                       FrontSearch& exact);

}  // namespace rematch
