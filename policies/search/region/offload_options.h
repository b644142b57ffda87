// Ways to run spans as one region that leaves what it holds to the host until its backward.
#pragma once

#include <vector>

#include "policies/search/region/span_options.h"
#include "policies/search/region/spans.h"

namespace rematch {

// Spans of `kinds` side by side, wherever the trace has them, from span `first` for one. Each save
// set up to three times: with its inputs offloaded, with all that it keeps, and with both. Only
// what nobody else holds on the device leaves, whatever other spans do. Needs SearchSpace::offload.
std::vector<SpanOption> offload_options(const SearchedTrace& searched, int first,
                                        const std::vector<int>& kinds,
                                        const std::vector<std::vector<int>>& save_sets);

// Sets what a picked region offloads in the type of it that saves all that. Ops have their names.
void set_offloads(const PickedRegion& picked, RegionType& type);

}  // namespace rematch
