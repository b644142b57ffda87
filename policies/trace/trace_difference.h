// Compares two recordings of one step, made by two recorders or by two versions of one recorder.
#pragma once

#include <string>
#include <vector>

#include "policies/trace/trace.h"

namespace rematch {

// Returns one line for each part that differs: the sizes of the model, ops, saved tensors,
// lifetimes, or backward. Ignores how values and storages are numbered, and which of two names an
// op has (trace_op.h). If the result is empty, both traces give the same plans and predictions.
std::vector<std::string> trace_differences(const Trace& a, const Trace& b);

}  // namespace rematch
