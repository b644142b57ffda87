// Computes the bytes that a rank sends in a collective. These bytes determine the collective's
// time.
//
// Note [Bytes of a collective] S is the size in bytes of the whole tensor: the result of an
// all-gather, and the input of a reduce-scatter; for other collectives, input and result have equal
// sizes. With n ranks, a ring sends (n - 1) / n of S for an all-gather, a reduce-scatter or an
// all-to-all. A ring sends twice that amount for an all-reduce, and S for a broadcast. A
// shift of ring attention, an all-to-all over group "cp", sends S. These are
// the bus bandwidth factors of NCCL's tests
// (github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md).
#pragma once

#include "policies/base/bytes.h"
#include "policies/trace/collective.h"
#include "policies/trace/trace.h"

namespace rematch {

// `whole` is S in Note [Bytes of a collective]. `ranks` is at least 1.
Bytes sent_bytes(CollectiveKind kind, Bytes whole, std::int64_t ranks);

// Returns S of an op that starts a collective: the larger of its total input and total output
// bytes.
Bytes whole_bytes(const Trace& trace, const TracedOp& op);

// Returns the number of ranks in an op's process group, or nullopt if the number is unknown. Uses
// the size of the layout dimension with the group's name. If there is none, divides the larger of
// the op's input and output bytes by the smaller.
std::optional<std::int64_t> ranks_of(const Trace& trace, const TracedOp& op);

// These functions return the bytes that a rank sends, or nullopt for an op that does not start a
// collective. An unknown number of ranks is treated as very large.
std::optional<Bytes> sent_bytes(const Trace& trace, const TracedOp& op);
std::optional<Bytes> sent_bytes(const Trace& trace, const BackwardEvent& event);
std::optional<Bytes> sent_bytes(const Trace& trace, const TracedCollective& collective);

}  // namespace rematch
