// Every save set of one region worth having: saved bytes against recompute time against the
// transient, all as the simulator has them. Knows no other region: layer_mix.h puts regions side
// by side.
#pragma once

#include <chrono>
#include <map>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/predict/region/simulator.h"
#include "policies/search/region/save_sets.h"

namespace rematch {

struct BlockPoint {
  Bytes saved;                           // from forward to backward; free storages left out
  Bytes transient;                       // RegionSimulation::boundary_peak, saved bytes included
  std::chrono::nanoseconds recompute{};  // of the ops that recompute executes
  int num_recomputed = 0;                // of them
  std::vector<int> saves;                // local ops, ascending
  Bytes kept;                            // as `saved`, with the free storages
  Bytes demanded;                        // RegionSimulation::demanded_peak
};

// Note [What a block front is exact over]
// Saved bytes and recompute time are exact: additive op times, all save sets. The transient is a
// maximum over the whole replay, and no recursion over ops gives it. It is exact too if all save
// sets were tried, or if every point reaches the lower bound that holds for all of them, which
// whole_region nearly always does. Otherwise points are improved by single changes until none
// helps, and transient_gap bounds what may have been missed.
struct BlockFront {
  std::vector<BlockPoint> points;  // by saved bytes, then recompute time
  Bytes transient_bound;           // no save set has less
  // Every save set has a point that saves no more, is slower by at most time_gap and has a
  // transient larger by at most transient_gap. Both 0: exact.
  std::chrono::nanoseconds time_gap{};
  Bytes transient_gap;
  bool is_exact() const { return time_gap.count() == 0 && transient_gap.count == 0; }
};

struct BlockFrontLimits {
  std::size_t max_labels = kMaxSaveSetLabels;
  std::size_t max_tried_ops = 10;       // up to so many savable ops all save sets are tried
  std::size_t max_simulations = 1'000;  // of single changes
  // Only save sets on the convex hull of saved bytes and recompute time; time_gap counts the
  // others.
  bool hull_only = false;
  // A point that is less than this faster than a smaller one is left out; time_gap counts it.
  std::chrono::nanoseconds time_slack{};
};

// Save sets of one region under one schedule that were simulated, by their ops: what comes of them
// does not depend on which storages are free.
using SimulatedSets = std::map<std::vector<int>, BlockPoint>;

// `known` is used and added to, if it is given.
BlockFront find_block_front(const RegionGraph& graph, const SaveSetCosts& costs,
                            const BlockFrontLimits& limits = {}, SimulatedSets* known = nullptr);

// The region's ops under a save set.
std::vector<PlannedOp> ops_saving(const RegionGraph& graph, const std::vector<int>& saves);

// The region as a plan has it, with the order that on_demand runs it in, and its simulation. Ops
// have no names yet. `least` as in choose_order().
struct PlayedSaves {
  RegionType type;
  RegionSimulation simulation;
};
PlayedSaves play_saves(const RegionGraph& graph, const SaveSetCosts& costs,
                       const std::vector<int>& saves, Bytes least = {});

// One save set, priced and simulated.
BlockPoint price_save_set(const RegionGraph& graph, const SaveSetCosts& costs,
                          const std::vector<int>& saves, Bytes least = {});

}  // namespace rematch
