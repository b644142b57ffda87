// Computes the trace of one rank when parameters, gradients and optimizer state are sharded over
// ranks, as in FSDP. The model was never compared with measurements. It ignores communication,
// buffers of collectives and prefetch.
//
// Note [What a rank holds] A rank holds 1 / world of each parameter, of its gradient and of its
// optimizer state, rounded up. While a top-level scope (a block, the embedding, the head) runs
// forward or backward, its parameters are gathered in full. The gradients of that scope are
// unsharded until backward of another scope begins. With accumulation, the rank holds its share of
// the gradients before forward, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "policies/base/bytes.h"
#include "policies/trace/trace.h"

namespace rematch {

// Returns the size of one element of a parameter in bytes.
inline std::int64_t parameter_element_bytes(std::string_view dtype) {
  return dtype == "float32" ? 4 : 2;
}

struct ShardedStep {
  // The original trace with the bytes of one rank. The bytes of backward include gathered
  // parameters.
  Trace trace;
  // bytes of gathered parameters that are held while each forward op runs
  IdTable<OpId, Bytes> gathered;
};

// `world` must be at least 1. If it is 1, the result is the original trace.
ShardedStep shard_step(const Trace& trace, int world);

// Returns for each scope its outermost enclosing scope. For a top-level scope, this is the scope
// itself.
IdTable<ScopeId, ScopeId> top_scopes(const Trace& trace);
inline std::optional<ScopeId> top_of(const IdTable<ScopeId, ScopeId>& tops,
                                     std::optional<ScopeId> scope) {
  return scope ? std::optional(tops[*scope]) : std::nullopt;
}

// Returns for each top-level scope the bytes of the parameters that its ops read. Each storage
// counts once. The entries of other scopes are 0.
IdTable<ScopeId, Bytes> parameters_by_top_scope(const Trace& trace);

}  // namespace rematch
