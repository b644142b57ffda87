// Finds ways to run spans as one region that offloads what it holds until its backward.
#pragma once

#include <vector>

#include "policies/search/region/span_options.h"
#include "policies/search/region/spans.h"

namespace rematch {

// Considers adjacent spans of `kinds` wherever the trace has them; span `first` starts one such
// row. Tries each save set up to three times: offloading its inputs, everything that it keeps, or
// both. Offloads only values that no other span holds on the device, whatever options other spans
// use. Requires SearchSpace::offload.
std::vector<SpanOption> offload_options(const SearchedTrace& searched, int first,
                                        const std::vector<int>& kinds,
                                        const std::vector<std::vector<int>>& save_sets);

// Sets what a picked region offloads in its type, which saves all of it so far. The type's ops must
// have their names.
void set_offloads(const PickedRegion& picked, RegionType& type);

}  // namespace rematch
