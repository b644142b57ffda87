// Finds ways to run spans as one region that offloads the values that the region holds until its
// backward.
#pragma once

#include <vector>

#include "policies/search/region/span_options.h"
#include "policies/search/region/spans.h"

namespace rematch {

// Makes options for adjacent spans of `kinds`. The options apply wherever spans of these kinds
// follow each other in the trace; span `first` is one such place. Tries each save set up to three
// times: with its inputs offloaded, with everything that it keeps offloaded, and with both.
// Offloads only values that no other span holds on the device under any option. Requires
// SearchSpace::offload.
std::vector<SpanOption> offload_options(const SearchedTrace& searched, int first,
                                        const std::vector<int>& kinds,
                                        const std::vector<std::vector<int>>& save_sets);

// For each value that `picked` offloads, changes the treatment in `type` from save to offload. The
// ops of `type` must have their names.
void set_offloads(const RegionSaves& picked, RegionType& type);

}  // namespace rematch
