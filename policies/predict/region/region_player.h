// Plays a region's backward events on a ReplayState.
#pragma once

#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/predict/region/replay_state.h"
#include "policies/predict/region/simulator.h"
#include "policies/replay/demand.h"

namespace rematch {

// Tries out which pending slots a demand materialises early: a search for the demand steps of a
// plan.
class OrderSearch {
 public:
  virtual ~OrderSearch() = default;
  // The slot to run next before (after) the demanded one. Asked until it names none; a slot that
  // lacks nothing may be named.
  virtual OptionalIndex next_before(int demanded, ReplayState& state) = 0;
  virtual OptionalIndex next_after(int demanded, ReplayState& state) = 0;
};

// `search`, with kLazyClosure, takes the place of the type's demand steps.
RegionSimulation play_region(const RegionGraph& graph, const RegionType& type, ReplayExtent extent,
                             OrderSearch* search = nullptr);

}  // namespace rematch
