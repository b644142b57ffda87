// The save sets of one region that no other beats in both saved bytes and recompute time, by a
// frontier dynamic program over its ops. Knows nothing of the transient: block_front.h adds it.
#pragma once

#include <chrono>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"

namespace rematch {

// The measures of a save set. Times of ops add up.
struct SaveSetCosts {
  Schedule schedule = Schedule::kOnDemand;
  std::vector<std::chrono::nanoseconds> op_times;  // by local op
  // By local storage: somebody else holds it from forward to backward, so keeping it is free.
  // Empty: nobody does.
  std::vector<bool> free_storages;
  // By local op: its result is not to be kept. Empty: any may be.
  std::vector<bool> never_saved;
};

struct SaveSet {
  Bytes saved;  // constants of the region included, free storages not
  std::chrono::nanoseconds recompute{};
  std::vector<int> ops;  // local, ascending
};

struct SaveSets {
  std::vector<SaveSet> sets;  // by saved bytes, ascending; recompute times descend
  // No save set is faster by more than this than the listed one of at most its bytes. 0: exact.
  std::chrono::nanoseconds time_gap{};
};

// Ops whose outputs can be kept and are asked for, by backward or by an op that recompute may run;
// to save any other op is to hold bytes that nobody reads.
std::vector<int> savable_ops(const RegionGraph& graph, const SaveSetCosts& costs);

// `max_labels` bounds the work; past it labels are thinned, and time_gap says by how much.
inline constexpr std::size_t kMaxSaveSetLabels = 20'000;
SaveSets find_save_sets(const RegionGraph& graph, const SaveSetCosts& costs,
                        std::size_t max_labels = kMaxSaveSetLabels);

// Slots that backward asks for, and that the region made: what recompute is for.
std::vector<int> demanded_slots(const RegionGraph& graph);

}  // namespace rematch
