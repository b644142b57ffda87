// Gates loss curves of any trainer with tiers T1 and T2 and the plain threshold. Steps are matched
// by number; the checks are the same as for reports. T0 needs bits, which a curve does not have.
// Pure.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "reports/gate/gate.h"
#include "reports/gate/loss_curve.h"
#include "reports/record/gate.h"

namespace rematch {

// Two curves have no step in common, so they do not describe the same training.
struct NoCommonSteps {
  std::string message;  // one line
};

// Decides the tiers envelope and equivalence (with its margin and window) and the largest
// difference, as `settings` asks. If it asks for none, decides the envelope. Each side needs at
// least one curve.
std::variant<GateRecord, NoCommonSteps> gate_curves(const std::vector<RunLosses>& candidates,
                                                    const std::vector<RunLosses>& references,
                                                    const GateSettings& settings);

}  // namespace rematch
