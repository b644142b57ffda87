// Simulates the engine in one region's backward, op for op and byte for byte, from a trace.
// Knows no time, and nothing of what kernels allocate inside.
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

// Bytes of a region in backward at every op boundary, and when it frees what forward made:
// what a simulation of the whole step needs of it. Regions of the same behaviour under the same
// plan share one.

struct RegionTimeline {
  // An op boundary of recompute, or a storage that forward made and the region lets go of.
  struct Step {
    OptionalIndex let_go;  // local storage; absent: a boundary
    int op = 0;            // local, of a boundary
    Bytes recomputed;      // of a boundary: bytes that the region holds and recompute made
  };
  // The region's slots as backward asks for them and lets go of them, in order.
  struct Event {
    std::size_t end_step = 0;  // its steps end here and begin where those before it end
    Bytes recomputed;          // held when it is over
  };

  std::vector<int> kept;  // local storages that the region holds from forward on
  std::vector<Step> steps;
  std::vector<Event> events;
  bool ends = false;  // with the last event nothing refers to the region any more
};

// An op that recompute executes, and the saved tensor whose demand made it.
struct ExecutedOp {
  OpId op;
  PackId demand;
  bool operator==(const ExecutedOp&) const = default;
};

struct RegionSimulation {
  std::vector<ExecutedOp> executed;  // in order
  Bytes kept;    // from forward to backward: what the plan saves, dead saves included
  Bytes inputs;  // also held that long: earlier ops' results that the region reads
  // Bytes that the region holds (kept, recomputed, in backward's hands) plus all that backward
  // made, at the first demand, after each executed op and each backward op, to the region's last
  // release. Its inputs, the same all the time, are left out.
  std::vector<Bytes> curve;
  Bytes peak;           // of the curve
  Bytes boundary_peak;  // at op boundaries alone, where a recomputed op has given its inputs away
  Bytes demanded_peak;  // the same, from the first demand on
  RegionTimeline timeline;
};

// Ops [first_op, end_op) are the region, `type` what the plan says of it.
RegionSimulation simulate_region(const Trace& trace, OpId first_op, OpId end_op,
                                 const RegionType& type, Schedule schedule);
RegionSimulation simulate_region(const RegionGraph& graph, const RegionType& type,
                                 Schedule schedule);

// The pending slot that a demand materialises next beside the demanded one; it may lack nothing.
// Asked before the demanded one runs and after it, each time until it names none.
using NextEarly = std::function<OptionalIndex(int demanded, ReplayState& state)>;

// With kLazyClosure, `next` takes the place of the type's demand steps, and what it named is added
// to `steps`.
RegionSimulation play_region(const RegionGraph& graph, const RegionType& type, ReplayExtent extent,
                             const NextEarly& next = {}, std::vector<DemandStep>* steps = nullptr);

}  // namespace rematch
