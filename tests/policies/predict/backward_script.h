// Helpers for tests that write the backward events of a trace by hand.
#pragma once

#include <vector>

#include "policies/plan/plan.h"
#include "policies/trace/trace.h"
#include "tests/support/ids.h"

namespace rematch::testing {

// `other_bytes` are the bytes that backward has allocated and not freed before the demand.
inline BackwardEvent demand(PackId pack, std::int64_t other_bytes = 0) {
  BackwardEvent event;
  event.kind = BackwardEvent::Kind::kDemand;
  event.pack = pack;
  event.other_bytes = {other_bytes};
  return event;
}

inline BackwardEvent release(PackId pack) {
  BackwardEvent event = demand(pack);
  event.kind = BackwardEvent::Kind::kRelease;
  return event;
}

inline BackwardEvent backward_op(std::int64_t other_bytes) {
  BackwardEvent event;
  event.op = "aten::mul.Tensor";
  event.other_bytes = {other_bytes};
  return event;
}

// Returns a region type that saves the listed ops, given by position in the region.
inline RegionType saving(const Trace& trace, OpId first, OpId end, const std::vector<int>& saved) {
  RegionType type;
  for (const OpId op : IdRange(first, end))
    type.ops.push_back({trace.ops[op].name, "", {}, {}, "", {}});
  for (PlannedOp& op : type.ops) op.treatment = Treatment::kRecompute;
  for (int op : saved) type.ops[op].treatment = Treatment::kSave;
  return type;
}

}  // namespace rematch::testing
