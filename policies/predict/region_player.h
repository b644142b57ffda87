// Plays a region's backward events on a ReplayState. Inside this folder.
#pragma once

#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/region.h"
#include "policies/predict/replay_state.h"
#include "policies/predict/simulator.h"

namespace rematch {

// Which pending slots a demand materialises early.
class DemandOrder {
 public:
  virtual ~DemandOrder() = default;
  // The slot to run next before (after) the demanded one, or kNone. Asked until it says kNone; a
  // slot that lacks nothing may be named.
  virtual int next_before(int demanded, const ReplayState& state) = 0;
  virtual int next_after(int demanded, const ReplayState& state) = 0;
};

enum class ReplayExtent : std::uint8_t {
  kPrefix,        // at the first demand, everything that forward ran up to the stop
  kWholeClosure,  // at the first demand, everything that live slots depend on
  kLazyClosure,   // at each demand what it lacks
};

// `order` is for kLazyClosure, and may be null.
RegionSimulation play_region(const RegionGraph& graph, const RegionType& type, ReplayExtent extent,
                             DemandOrder* order);

}  // namespace rematch
