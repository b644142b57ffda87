// Compares two recordings of one step, made by two recorders or by two versions of one recorder.
#pragma once

#include <string>
#include <vector>

#include "policies/trace/trace.h"

namespace rematch {

// Returns one line for each part that differs, with the first difference in it. The parts are the
// sizes of the model, ops, saved tensors, lifetimes and backward. Ignores the numbering of values
// and storages, and treats the two names of one op (trace_op.h) as equal. If the result is empty,
// both traces give the same plans and predictions.
std::vector<std::string> trace_differences(const Trace& a, const Trace& b);

}  // namespace rematch
