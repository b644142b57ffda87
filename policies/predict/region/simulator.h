// Simulates the engine in one region's backward from a trace, op for op and byte for byte. Does not
// know times, or memory that kernels allocate internally.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/predict/region/replay_state.h"
#include "policies/replay/demand.h"
#include "policies/trace/trace.h"

namespace rematch {

// The bytes of a region at every op boundary of backward, and when it frees what forward made. The
// simulation of a whole step uses this. Regions with the same behaviour and the same plan share one
// timeline.

struct RegionTimeline {
  // An op boundary of recompute, or the release of a storage that forward made.
  struct Step {
    OptionalIndex let_go;  // local storage that is released; absent: a boundary
    int op = 0;            // for a boundary: local op
    Bytes recomputed;      // for a boundary: bytes that recompute made and the region holds
  };
  // An event of one of the region's slots. The events are in the order of backward.
  struct Event {
    std::size_t end_step = 0;  // its steps end here and begin where the previous event's steps end
    Bytes recomputed;          // held after the event
  };

  std::vector<int> kept;  // local storages that the region holds since forward
  std::vector<Step> steps;
  std::vector<Event> events;
  bool ends = false;  // nothing refers to the region after the last event
};

// An op that recompute executes, and the saved tensor whose demand caused it.
struct ExecutedOp {
  OpId op;
  PackId demand;
  bool operator==(const ExecutedOp&) const = default;
};

struct RegionSimulation {
  std::vector<ExecutedOp> executed;  // ordered by execution
  Bytes kept;    // held from forward to backward because the plan saves it; includes dead saves
  Bytes inputs;  // held equally long: results of earlier ops that the region reads
  // Bytes that the region holds (kept, recomputed, or held by backward) plus all bytes that
  // backward allocated. One entry each for the first demand, every executed op and every backward
  // op, up to the region's last release. Excludes the region's inputs, which do not change.
  std::vector<Bytes> curve;
  Bytes peak;           // maximum of the curve
  Bytes boundary_peak;  // at op boundaries only, where a recomputed op has released its inputs
  Bytes demanded_peak;  // like boundary_peak, but from the first demand on
  RegionTimeline timeline;
};

// Simulates ops [first_op, end_op) as a region that is planned by `type`.
RegionSimulation simulate_region(const Trace& trace, OpId first_op, OpId end_op,
                                 const RegionType& type, Schedule schedule);
RegionSimulation simulate_region(const RegionGraph& graph, const RegionType& type,
                                 Schedule schedule);

// Returns the pending slot to materialize next in addition to the demanded one. The slot may need
// no op. Called before and after the demanded slot runs, each time until it returns nullopt.
using NextEarly = std::function<OptionalIndex(int demanded, ReplayState& state)>;

// With kLazyClosure, `next` replaces the type's demand steps. The slots that it returns are
// appended to `steps`.
RegionSimulation play_region(const RegionGraph& graph, const RegionType& type, ReplayExtent extent,
                             const NextEarly& next = {}, std::vector<DemandStep>* steps = nullptr);

}  // namespace rematch
