// Simulates the engine in one region's backward, op for op and byte for byte, from a trace.
// Knows no time, and nothing of what kernels allocate inside.
#pragma once

#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/predict/region/region_timeline.h"
#include "policies/trace/trace.h"

namespace rematch {

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

}  // namespace rematch
