// Finds ways to run spans as one region that offloads the values that the region holds until its
// backward.
#pragma once

#include <vector>

#include "policies/search/region/span_options.h"
#include "policies/search/region/spans.h"

namespace rematch {

// Makes options that offload, for adjacent spans of `kinds`. Span `first` is the first of such
// spans in the trace. Offloads the inputs of the region, the results that it keeps, or both, but
// only values that no other span may hold on the device. Requires SearchSpace::offload.
std::vector<SpanOption> offload_options(const SearchedTrace& searched, int first,
                                        const std::vector<int>& kinds,
                                        const std::vector<std::vector<int>>& save_sets);

// Changes the treatment of each offloaded op from save to offload, and sets stored_inputs. The ops
// of `type` must have their names.
void set_offloads(const RegionSaves& picked, RegionType& type);

}  // namespace rematch
