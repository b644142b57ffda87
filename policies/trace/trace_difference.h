// How two recordings of one step differ: as two recorders see it, or two versions of one.
#pragma once

#include <string>
#include <vector>

#include "policies/trace/trace.h"

namespace rematch {

// A line for each part in which they differ, with its first difference: sizes of the model, ops,
// saved tensors, lifetimes, backward. Numbers of values and storages, and the two names of one op
// (trace_op.h), make no difference. Empty: plans and predictions are the same for both.
std::vector<std::string> trace_differences(const Trace& a, const Trace& b);

}  // namespace rematch
