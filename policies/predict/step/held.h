// Bytes that a plan holds from forward to backward, counted by storage: a tensor that two regions
// share is held once.
#pragma once

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// Parameters, constants and the batch, alive anyway, are left out.
struct HeldAfterForward {
  Bytes kept;       // by regions, because the plan saves it
  Bytes inputs;     // by regions, because they read it and an earlier op made it; not kept as well
  Bytes unmanaged;  // by autograd, outside all regions; not held by a region as well
  Bytes on_host;    // by regions, and by nobody on the device
  Bytes total() const { return kept + inputs + unmanaged; }
};

// Throws std::invalid_argument if the plan was made for another model.
HeldAfterForward held_after_forward(const Trace& trace, const Plan& plan);

}  // namespace rematch
