// Finds the save sets of one region that are undominated in saved bytes and recompute time. Uses a
// frontier dynamic program over the region's ops. Does not consider the transient, which
// block_front.h adds.
#pragma once

#include <chrono>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"

namespace rematch {

// The costs by which save sets are compared. The times of ops add up.
struct SaveSetCosts {
  Schedule schedule = Schedule::kOnDemand;
  // indexed by op of the region: time to recompute it
  std::vector<std::chrono::nanoseconds> op_times;
  // Storages of the region that something else holds from forward to backward. Keeping them is
  // free. Empty: no storage is free.
  std::vector<bool> free_storages;
  // Ops of the region whose results must not be kept. Empty: every result may be kept.
  std::vector<bool> never_saved;
};

struct SaveSet {
  Bytes saved;  // bytes held, including constants of the region, excluding `free_storages`
  std::chrono::nanoseconds recompute{};
  std::vector<int> ops;  // saved ops as ascending local indices
};

struct SaveSets {
  std::vector<SaveSet> sets;  // sorted by ascending saved bytes; recompute times descend
  // For every save set, some listed set has at most the same bytes and is slower by at most this
  // time. The list is exact if this is 0.
  std::chrono::nanoseconds time_gap{};
};

// Returns the ops whose outputs can be kept and are read by backward or by an op that recompute may
// run. Saving any other op would hold bytes that nothing reads.
std::vector<int> savable_ops(const RegionGraph& graph, const SaveSetCosts& costs);

// `max_labels` limits the work. If there are more labels, they are thinned, and time_gap bounds the
// loss.
inline constexpr std::size_t kMaxSaveSetLabels = 20'000;
SaveSets find_save_sets(const RegionGraph& graph, const SaveSetCosts& costs,
                        std::size_t max_labels = kMaxSaveSetLabels);

// Returns the slots (saved tensors) that backward demands and that recompute must provide.
std::vector<int> demanded_slots(const RegionGraph& graph);

}  // namespace rematch
