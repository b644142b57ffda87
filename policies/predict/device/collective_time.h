// The bytes that a rank sends in a collective, which is what its time is made of.
//
// Note [Bytes of a collective]
// S is the whole: the result of an all-gather, the input of a reduce-scatter, either of the others.
// With n ranks a ring sends (n - 1) / n of S for an all-gather, a reduce-scatter or an all-to-all,
// twice that for an all-reduce, and S for a broadcast: the bus bandwidth factors of NCCL's tests
// (github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md).
#pragma once

#include "policies/base/bytes.h"
#include "policies/trace/collective.h"
#include "policies/trace/trace.h"

namespace rematch {

// `whole` is S; `ranks` is at least 1.
Bytes sent_bytes(CollectiveKind kind, Bytes whole, std::int64_t ranks);

// S of an op that starts a collective: the larger of all that goes in and all that comes out.
Bytes whole_bytes(const Trace& trace, const TracedOp& op);

// Ranks of an op's group: the trace's dimension of that name; where there is none, the ratio that
// the shapes of an all-gather or a reduce-scatter have. Nothing: neither tells.
std::optional<std::int64_t> ranks_of(const Trace& trace, const TracedOp& op);

// Nothing for an op that starts no collective. With an unknown number of ranks the factor of many.
std::optional<Bytes> sent_bytes(const Trace& trace, const TracedOp& op);
std::optional<Bytes> sent_bytes(const Trace& trace, const BackwardEvent& event);
std::optional<Bytes> sent_bytes(const Trace& trace, const TracedCollective& collective);

}  // namespace rematch
