// Computes how many bytes a plan holds from forward to backward, by reason. The total equals the
// step simulator's live bytes at the end of forward, without tensors that only the program holds. A
// storage that two regions share is counted once.
#pragma once

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// Bytes by holder. Excludes parameters, constants and the batch, which are alive for the whole
// step.
struct HeldAfterForward {
  Bytes kept;  // bytes that regions hold because the plan saves them
  // bytes of results of earlier ops that regions read, and of copies of overwritten tensors;
  // excludes `kept`
  Bytes inputs;
  // bytes that only autograd holds, outside all regions
  Bytes unmanaged;
  Bytes total() const { return kept + inputs + unmanaged; }
};

// Throws std::invalid_argument if the plan was made for another model.
HeldAfterForward held_after_forward(const Trace& trace, const Plan& plan);

}  // namespace rematch
