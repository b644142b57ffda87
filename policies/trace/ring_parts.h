// Finds the ops of ring attention in a trace.
//
// Note [Parts of ring attention] Ring attention consists of several ops, unlike other attention.
// Each step hands its result to the next step, and shifts bring the keys and values. Only the last
// op, rematch::ring_attention, has a result that code outside the ring reads. In PyTorch, selective
// checkpointing sees the whole ring as one op. So a list that keeps attention or collectives keeps
// the result of the last op and no parts, and recompute skips the parts of a kept result. A
// selector with a scope picks parts too.
#pragma once

#include <vector>

#include "policies/trace/trace.h"

namespace rematch {

inline constexpr const char* kRingStep = "rematch::ring_attention_step";

// Returns whether the op is a step before the last, or starts a shift.
bool is_part_of_ring(const TracedOp& op);

// Returns the parts, with their waits, of the ring that ends with this op. Returns nothing for
// other ops.
std::vector<OpId> parts_of_ring(const Trace& trace, OpId last);

}  // namespace rematch
