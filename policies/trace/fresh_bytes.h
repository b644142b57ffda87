// Bytes that an op newly allocates.
#pragma once

#include "policies/base/bytes.h"
#include "policies/trace/trace.h"

namespace rematch {

// Bytes of the op's outputs in storages that none of its inputs has: 0 for views and for what is
// written in place.
Bytes fresh_bytes(const Trace& trace, const TracedOp& op);

}  // namespace rematch
