// Loss curves of any trainer under the gate's tiers T1 and T2 and its threshold: the steps are
// matched by their numbers, the checks are those of reports. T0 needs bits, which no curve has.
// Pure.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "reports/gate/gate.h"
#include "reports/gate/loss_curve.h"
#include "reports/record/gate.h"

namespace rematch {

// Two curves without a step in common: they are not of one training.
struct NoCommonSteps {
  std::string message;  // in a line
};

// Decides the tiers envelope and equivalence (with its margin and window) and the largest
// difference, as `settings` asks; the envelope if it asks for none. Each side has one curve at
// least.
std::variant<GateRecord, NoCommonSteps> gate_curves(const std::vector<RunLosses>& candidates,
                                                    const std::vector<RunLosses>& references,
                                                    const GateSettings& settings);

}  // namespace rematch
