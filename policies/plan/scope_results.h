// The results of a part of the model: the ops in a scope whose result ops outside it read. It knows
// no pattern; selector.h says which scopes are meant.
#pragma once

#include <vector>

#include "policies/trace/trace.h"

namespace rematch {

// For each op of the trace, in order: does it make a storage that a forward op of another instance,
// or of none, reads, directly or through views. `instance_of_scope` has for each scope the instance
// that it is part of, or kNone. Views make no storage, and neither do writes in place: of a storage
// written after it was made, the op that made it is the result.
std::vector<bool> scope_results(const Trace& trace, const std::vector<ScopeId>& instance_of_scope);

}  // namespace rematch
