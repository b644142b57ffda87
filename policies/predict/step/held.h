// Computes how many bytes a plan holds from forward to backward, split by the reason for holding
// them. The total equals the bytes that are alive in the step simulator at the end of forward,
// without the bytes that the program holds. Bytes are counted by storage, so a tensor that two
// regions share is counted once.
#pragma once

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// Bytes by holder. Excludes parameters, constants and the batch, which are alive for the whole
// step.
struct HeldAfterForward {
  Bytes kept;  // bytes that regions hold because the plan saves them
  // bytes that regions hold because they read results of earlier ops, or because they copied
  // tensors that were overwritten; excludes `kept`
  Bytes inputs;
  // bytes that autograd holds outside all regions; excludes bytes that a region holds too
  Bytes unmanaged;
  Bytes total() const { return kept + inputs + unmanaged; }
};

// Throws std::invalid_argument if the plan was made for another model.
HeldAfterForward held_after_forward(const Trace& trace, const Plan& plan);

}  // namespace rematch
