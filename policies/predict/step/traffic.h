// The collectives that one rank issues in a step under a plan: how many, and what it sends in them.
// No times: see step_range.h.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/trace/collective.h"
#include "policies/trace/phase.h"
#include "policies/trace/trace.h"

namespace rematch {

struct Issued {
  std::int64_t count = 0;
  Bytes sent;  // see Note [Bytes of a collective]
  bool operator==(const Issued&) const = default;
};

// By phase and kind; sums of gradients are the optimizer's. A kind that is not issued is absent.
using Traffic = std::array<std::map<CollectiveKind, Issued>, kNumPhases>;

// `trace` is a rank's. Throws std::invalid_argument if the plan was made for another model.
Traffic predict_traffic(const Trace& trace, const Plan& plan, Schedule schedule);

}  // namespace rematch
