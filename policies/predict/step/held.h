// Computes the bytes that a plan holds from forward to backward. Bytes are counted by storage, so a
// tensor that two regions share is counted once.
#pragma once

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// Excludes parameters, constants and the batch, which are alive anyway.
struct HeldAfterForward {
  Bytes kept;    // held by regions because the plan saves it
  Bytes inputs;  // held by regions because they read it and an earlier op made it; excludes `kept`
  Bytes unmanaged;  // held by autograd outside all regions; excludes bytes that a region holds too
  Bytes on_host;    // held by regions on the host only
  Bytes total() const { return kept + inputs + unmanaged; }
};

// Throws std::invalid_argument if the plan was made for another model.
HeldAfterForward held_after_forward(const Trace& trace, const Plan& plan);

}  // namespace rematch
