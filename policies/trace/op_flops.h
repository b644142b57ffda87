// The operations of matmuls and attention, from the shapes of what they read.
#pragma once

#include <cstdint>

#include "policies/trace/trace.h"

namespace rematch {

// Multiply-adds count as two; 0 for other ops. Attention forward is two products of [tokens, keys]
// by head width, masked or not: what the kernel is asked for, not what it skips. Needs the op's
// name, class and inputs, and the shapes of `trace`.
std::int64_t flops_of(const Trace& trace, const TracedOp& op);

}  // namespace rematch
