// Finds one plan of a simple form (see simple_form.h). Commands show this plan next to a front.
#pragma once

#include <optional>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/search/front/front_json.h"
#include "policies/search/front/front_search.h"
#include "policies/search/pipeline/pipeline_front.h"
#include "policies/search/region/span_options.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Returns the memory that a search may use: the budget or, if there is no budget, the device's
// memory for tensors. Returns nullopt if the record limits the slowdown instead, or if neither
// memory is known.
std::optional<Bytes> limit_of(const FrontRecord& record);

// Finds the best plan of a simple form within the record's limit. With a largest slowdown, the best
// plan has the lowest peak. Otherwise it is the fastest plan within limit_of() or, without a limit,
// within the peak of the front's knee. If no plan fits, returns the plan with the lowest peak.
// `exact` is the search that made the record's front. Returns nullopt if the search was stopped.
std::optional<SimplePoint> find_simple(const Trace& trace, const Profile& profile,
                                       const SearchSpace& space, const FrontRecord& record,
                                       FrontSearch& exact);

// The same for a pipeline with one stage on each rank: each stage has a plan of a simple form, and
// all stages have the same limit.
std::optional<SimplePoint> find_simple(const std::vector<SearchedStage>& stages,
                                       const SearchSpace& space, const FrontRecord& record,
                                       PipelineSearch& exact);

}  // namespace rematch
