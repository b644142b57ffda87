// Finds the save sets of one region that are undominated in saved bytes, recompute time and
// transient. The simulator computes these figures. Considers a single region; layer_mix.h combines
// regions.
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
  Bytes saved;      // bytes held from forward to backward; excludes storages that are free to keep
  Bytes transient;  // RegionSimulation::boundary_peak, which includes saved bytes
  std::chrono::nanoseconds recompute{};  // time of the ops that recompute executes
  int num_recomputed = 0;                // number of ops that recompute executes
  std::vector<int> saves;                // saved ops as ascending local indices
  Bytes kept;                            // like `saved`, but with storages that are free to keep
  Bytes demanded;                        // RegionSimulation::demanded_peak
};

// Note [Exactness of a block front] Saved bytes and recompute time are sums over ops, so the search
// for save sets computes them exactly. The transient is a maximum over the whole replay, so it
// needs a simulation of each save set. The front is exact if all save sets were simulated, or if
// every point has the lowest possible transient, which is usual with whole_region. Otherwise single
// changes improve the points, and transient_gap bounds what may have been missed.
struct BlockFront {
  std::vector<BlockPoint> points;  // sorted by saved bytes, then by recompute time
  Bytes transient_bound;           // lower bound of the transient over all save sets
  // For every save set, some point saves at most the same bytes. That point is slower by at most
  // time_gap, and its transient is higher by at most transient_gap. The front is exact if both gaps
  // are 0.
  std::chrono::nanoseconds time_gap{};
  Bytes transient_gap;
  bool is_exact() const { return time_gap.count() == 0 && transient_gap.count == 0; }
};

struct BlockFrontLimits {
  std::size_t max_labels = kMaxSaveSetLabels;
  // if a region has more savable ops than this, not all save sets are tried
  std::size_t max_tried_ops = 10;
  std::size_t max_simulations = 1'000;  // maximum number of simulations for single changes
  // If true, uses only save sets on the convex hull of saved bytes and recompute time.
  bool hull_only = false;
  // Drops a point if some point with fewer bytes is slower by less than this time. time_gap
  // includes the loss.
  std::chrono::nanoseconds time_slack{};
};

// Simulated points of a region under one schedule, keyed by the saved ops.
using SimulatedSets = std::map<std::vector<int>, BlockPoint>;

// Finds the useful save sets of a region. If `known` is given, uses its points and adds new ones.
BlockFront find_block_front(const RegionGraph& graph, const SaveSetCosts& costs,
                            const BlockFrontLimits& limits = {}, SimulatedSets* known = nullptr);

// Returns the region's ops with the treatments of a save set.
std::vector<PlannedOp> ops_saving(const RegionGraph& graph, const std::vector<int>& saves);

// A region that saves a given set of ops: its type, and its simulation. The ops of the type have no
// names yet. `least` is the same as in choose_order().
struct PlayedSaves {
  RegionType type;
  RegionSimulation simulation;
};
PlayedSaves play_saves(const RegionGraph& graph, const SaveSetCosts& costs,
                       const std::vector<int>& saves, Bytes least = {});

// Simulates one save set and computes its point.
BlockPoint price_save_set(const RegionGraph& graph, const SaveSetCosts& costs,
                          const std::vector<int>& saves, Bytes least = {});

}  // namespace rematch
