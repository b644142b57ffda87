// Which regions a block is cut into, and what each of them keeps: all ways that no other way beats,
// by a dynamic program over the places where a region may start or end.
#pragma once

#include <functional>
#include <vector>

#include "policies/search/region/span_options.h"
#include "policies/search/region/span_pricing.h"

namespace rematch {

// Ops that may become a region, and how.
struct RegionCandidate {
  LocalRange range;
  std::vector<PlayedRegion> options;
};

// Every set of disjoint candidates, the empty one included, with every option of each; but for
// those that hold no less, are faster by at most `slack` and have no smaller transient than one
// found. Once `stop` says true, nothing but the empty set.
std::vector<SpanOption> cut_block(SpanPricer& pricer,
                                  const std::vector<RegionCandidate>& candidates,
                                  std::chrono::nanoseconds slack,
                                  const std::function<bool()>& stop);

}  // namespace rematch
