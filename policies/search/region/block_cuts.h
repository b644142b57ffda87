// Finds the undominated ways to cut a block into regions and to choose what each region keeps. Uses
// a dynamic program over the places where a region may start or end.
#pragma once

#include <functional>
#include <vector>

#include "policies/search/region/span_options.h"
#include "policies/search/region/span_pricing.h"

namespace rematch {

// A range of ops that may become a region, and the options for this region.
struct RegionCandidate {
  LocalRange range;
  std::vector<RegionOption> options;
};

// Returns cuts of the block. A cut is a set of disjoint candidates, possibly empty, with one option
// for each. Once `stop` returns true, returns only the empty cut.
//
// Drops a cut if another cut is slower by at most `slack`, and neither its held bytes nor its
// transient is higher.
std::vector<SpanOption> cut_block(SpanPricer& pricer,
                                  const std::vector<RegionCandidate>& candidates,
                                  std::chrono::nanoseconds slack,
                                  const std::function<bool()>& stop);

}  // namespace rematch
