// Simulates what the engine does in backward of one region, op for op and byte for byte. Does not
// compute times, and does not count memory that kernels allocate internally.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/predict/region/replay_state.h"
#include "policies/replay/demand.h"
#include "policies/trace/trace.h"

namespace rematch {

// The bytes of a region at every op boundary of backward, and the points at which the region frees
// storages from forward. The simulation of a whole step uses timelines. Regions with the same
// behaviour and the same plan share one timeline.

struct RegionTimeline {
  // An op boundary of recompute, or the release of a storage from forward.
  struct Step {
    OptionalIndex released;  // local storage that is released; absent: this is an op boundary
    int op = 0;              // local index of the op that ends at the boundary
    Bytes recomputed;        // recomputed bytes that the region holds at the boundary
  };
  // An event of one of the region's slots. Events are in the order of backward.
  struct Event {
    // end of the event's range in `steps`; the range starts where the previous one ends
    std::size_t end_step = 0;
    Bytes recomputed;  // recomputed bytes held after the event
  };

  std::vector<int> kept;  // local storages held since forward
  std::vector<Step> steps;
  std::vector<Event> events;
  bool ends = false;  // true: nothing refers to the region after the last event
};

// An op that recompute executes, with the saved tensor whose demand caused the execution.
struct ExecutedOp {
  OpId op;
  PackId demand;
  bool operator==(const ExecutedOp&) const = default;
};

struct RegionSimulation {
  std::vector<ExecutedOp> executed;  // in the order of execution
  // bytes held from forward to backward because the plan saves them, even if nothing uses them
  Bytes kept;
  // bytes of earlier ops' results, and of copies of overwritten tensors, that the region holds from
  // forward to backward
  Bytes inputs;
  // Bytes that the region holds (kept, recomputed, or held by backward) plus all bytes that
  // backward allocated. There is one entry for the first demand, for every executed op and for
  // every backward op, until the region's last release. Excludes `inputs`, which is constant.
  std::vector<Bytes> curve;
  Bytes peak;  // maximum of `curve`
  // maximum at op boundaries only, where a recomputed op has already released its inputs
  Bytes boundary_peak;
  Bytes demanded_peak;  // like boundary_peak, but ignores boundaries before the first demand
  RegionTimeline timeline;
};

// Simulates the ops [first_op, end_op) as a region with the plan `type`.
RegionSimulation simulate_region(const Trace& trace, OpId first_op, OpId end_op,
                                 const RegionType& type, Schedule schedule);
RegionSimulation simulate_region(const RegionGraph& graph, const RegionType& type,
                                 Schedule schedule);

// Returns another slot to recompute now, in addition to the demanded slot, or nullopt. The
// simulator calls it until it returns nullopt, once before and once after the demanded slot is
// recomputed. The returned slot may already be available.
using NextEarly = std::function<OptionalIndex(int demanded, ReplayState& state)>;

// With kLazyClosure, `next` replaces the type's demand steps, and the slots that it returns are
// appended to `steps`. The simulation stops as soon as its peak reaches `give_up_at`; its result is
// then incomplete.
RegionSimulation play_region(const RegionGraph& graph, const RegionType& type, ReplayExtent extent,
                             const NextEarly& next = {}, std::vector<DemandStep>* steps = nullptr,
                             std::optional<Bytes> give_up_at = std::nullopt);

}  // namespace rematch
