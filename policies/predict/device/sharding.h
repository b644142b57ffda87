// The share of one rank when parameters, gradients and optimizer state are sharded over
// them, as FSDP does: a trace with that rank's bytes. A model of sharding, never measured: it knows
// no communication, no buffers of collectives and no prefetch.
//
// Note [What a rank holds]
// A 1 / world share, rounded up, of each parameter, of its gradient and of its optimizer state.
// While a top-level scope (a block, the embedding, the head) is at work, forward or backward, its
// parameters are there whole: gathered. Gradients of that scope are whole until another scope's
// backward begins, then shared out.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "policies/base/bytes.h"
#include "policies/trace/trace.h"

namespace rematch {

// Of one element of a parameter.
inline std::int64_t parameter_element_bytes(std::string_view dtype) {
  return dtype == "float32" ? 4 : 2;
}

struct ShardedStep {
  // The ops, scopes and packs of the original; bytes of one rank. Its backward has the gathered
  // parameters among what it makes itself.
  Trace trace;
  IdTable<OpId, Bytes> gathered;  // while each op of forward runs
};

// `world` is at least 1; with 1 nothing is gathered, and the trace is the original.
ShardedStep shard_step(const Trace& trace, int world);

// By scope: the outermost scope around it, or itself.
IdTable<ScopeId, ScopeId> top_scopes(const Trace& trace);
inline std::optional<ScopeId> top_of(const IdTable<ScopeId, ScopeId>& tops,
                                     std::optional<ScopeId> scope) {
  return scope ? std::optional(tops[*scope]) : std::nullopt;
}

// By scope: parameters that ops inside read, each storage once. Only top-level scopes have any.
IdTable<ScopeId, Bytes> parameters_by_top_scope(const Trace& trace);

}  // namespace rematch
