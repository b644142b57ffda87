// Synthetic runs for the tests of the gate. The functions are pure.
#pragma once

#include <string>
#include <vector>

#include "reports/gate/gate.h"
#include "reports/gate/loss_arms.h"

namespace rematch::testing {

inline const std::vector<float> kLosses = {5, 4, 3, 2};

// Steps with these losses and everything else equal. A loss that is not finite is stored only as
// bits.
Steps steps_of(const std::vector<float>& losses);

// One side of a loss check for policy none, with a run for each list of losses.
LossArm arm_of(const std::vector<std::vector<float>>& runs);

// sample_point with these losses.
PointRecord trained_point(const std::string& policy, const std::vector<float>& losses = kLosses);

Report report_of(const std::vector<PointRecord>& points);

GateRecord gate(const Report& report, const Report& reference, const GateSettings& settings);

}  // namespace rematch::testing
