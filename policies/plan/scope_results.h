// The results of a part of the model: the ops in a scope whose result ops outside it read. It knows
// no pattern; selector.h says which scopes are meant.
#pragma once

#include <optional>

#include "policies/trace/trace.h"

namespace rematch {

// For each op of the trace: does it make a storage that a forward op of another instance,
// or of none, reads, directly or through views. `instance_of_scope` has for each scope the instance
// that it is part of, if any. Views make no storage, and neither do writes in place: of a storage
// written after it was made, the op that made it is the result.
IdTable<OpId, bool> scope_results(
    const Trace& trace, const IdTable<ScopeId, std::optional<ScopeId>>& instance_of_scope);

}  // namespace rematch
