// Simulates what the engine does in one region's backward, from a trace, op for op and byte for
// byte. Does not compute times, and does not count memory that kernels allocate internally.
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

// The bytes of a region at every op boundary of backward, and the moments at which the region frees
// storages that forward made. The simulation of a whole step uses timelines. Regions with the same
// behaviour and the same plan share one timeline.

struct RegionTimeline {
  // A step of the timeline. It is an op boundary of recompute, or the release of a storage that
  // forward made.
  struct Step {
    OptionalIndex released;  // local storage that is released; absent: the step is a boundary
    int op = 0;              // local op of a boundary
    Bytes recomputed;        // bytes made by recompute that the region holds at a boundary
  };
  // An event of one of the region's slots. Events are in the order of backward.
  struct Event {
    // end of the event's steps; they begin where the previous event's steps end
    std::size_t end_step = 0;
    Bytes recomputed;  // bytes made by recompute and held after the event
  };

  std::vector<int> kept;  // local storages that the region holds since forward
  std::vector<Step> steps;
  std::vector<Event> events;
  bool ends = false;  // nothing refers to the region after the last event
};

// An op that recompute executes, with the saved tensor whose demand caused the execution.
struct ExecutedOp {
  OpId op;
  PackId demand;
  bool operator==(const ExecutedOp&) const = default;
};

struct RegionSimulation {
  std::vector<ExecutedOp> executed;  // in the order of execution
  // bytes held from forward to backward because the plan saves them, including dead saves
  Bytes kept;
  // bytes held from forward to backward because the region reads results of earlier ops, or copied
  // tensors that were overwritten
  Bytes inputs;
  // Bytes that the region holds (kept, recomputed, or held by backward) plus all bytes that
  // backward allocated. There is one entry for the first demand, one for every executed op and one
  // for every backward op, up to the region's last release. Excludes the region's inputs, which do
  // not change.
  std::vector<Bytes> curve;
  Bytes peak;  // maximum of the bytes above
  // maximum at op boundaries only, where a recomputed op has released its inputs
  Bytes boundary_peak;
  Bytes demanded_peak;  // like boundary_peak, but from the first demand on
  RegionTimeline timeline;
};

// Simulates the ops [first_op, end_op) as a region with the plan `type`.
RegionSimulation simulate_region(const Trace& trace, OpId first_op, OpId end_op,
                                 const RegionType& type, Schedule schedule);
RegionSimulation simulate_region(const RegionGraph& graph, const RegionType& type,
                                 Schedule schedule);

// Returns a further pending slot to materialize now, in addition to the demanded one, or nullopt.
// The simulator calls it repeatedly until it returns nullopt, once before the demanded slot runs
// and once after. The returned slot may already be available without running an op.
using NextEarly = std::function<OptionalIndex(int demanded, ReplayState& state)>;

// With kLazyClosure, `next` replaces the type's demand steps. Appends to `steps` the slots that
// `next` returns. Gives up as soon as the peak reaches `give_up_at`; the result is then incomplete,
// and its peak is at least `give_up_at`.
RegionSimulation play_region(const RegionGraph& graph, const RegionType& type, ReplayExtent extent,
                             const NextEarly& next = {}, std::vector<DemandStep>* steps = nullptr,
                             std::optional<Bytes> give_up_at = std::nullopt);

}  // namespace rematch
