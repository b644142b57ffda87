// Gates loss curves of any trainer with tiers T1 and T2 and a plain threshold, as gate.h does for
// reports. Steps are matched by number. Tier T0 is not available, because curves contain no bits.
// Pure.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "reports/gate/gate.h"
#include "reports/gate/loss_curve.h"
#include "reports/record/gate.h"

namespace rematch {

// Returned if two curves have no step in common, so they cannot be compared.
struct NoCommonSteps {
  std::string message;  // a one-line message
};

// Runs the checks that `settings` requests: tier envelope, tier equivalence (with its margin and
// window), and the limit on the largest difference. If `settings` requests none of them, runs the
// envelope check. Each side needs at least one curve.
std::variant<GateRecord, NoCommonSteps> gate_curves(const std::vector<RunLosses>& candidates,
                                                    const std::vector<RunLosses>& references,
                                                    const GateSettings& settings);

}  // namespace rematch
