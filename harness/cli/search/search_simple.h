// The plan of a search that every trainer can express, beside its front.
#pragma once

#include <optional>

#include "policies/search/front/front.h"
#include "policies/search/front/front_json.h"

namespace rematch {

// The memory that a search may use: the budget, else the device's memory. Nothing where a slowdown
// was asked about, and where no memory is known.
std::optional<Bytes> limit_of(const FrontRecord& record);

// For what the record asks, or where it asks nothing for the peak of the knee. The record's front
// is that of `exact`. An interrupted search has none.
std::optional<SimplePoint> find_simple(const Trace& trace, const Profile& profile,
                                       const SearchSpace& space, const FrontRecord& record,
                                       FrontSearch& exact);

}  // namespace rematch
