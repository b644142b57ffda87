// Finds options that run adjacent spans as one region and offload what the region holds.
#pragma once

#include <vector>

#include "policies/search/region/span_options.h"
#include "policies/search/region/spans.h"

namespace rematch {

// Makes offloading options that apply wherever spans of these kinds follow each other in the trace.
// `first` is the index of the first span in one such place. An option offloads the region's inputs,
// the results that the region keeps, or both. It leaves out values that another span may hold on
// the device. Requires SearchSpace::offload.
std::vector<SpanOption> offload_options(const SearchedTrace& searched, int first,
                                        const std::vector<int>& kinds,
                                        const std::vector<std::vector<int>>& save_sets);

// Changes the treatment of each offloaded op from save to offload, and sets stored_inputs. The ops
// of `type` must have their names.
void set_offloads(const RegionSaves& picked, RegionType& type);

}  // namespace rematch
