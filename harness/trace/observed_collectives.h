// The collectives that a call issues, for parts of a step that a trace has no ops of.
#pragma once

#include <functional>
#include <vector>

#include "policies/trace/trace.h"

namespace rematch {

// In order, on whatever device their tensors are; meta needs no process group. Nothing else may
// observe ops meanwhile.
std::vector<TracedCollective> collectives_of(const std::function<void()>& call);

}  // namespace rematch
