// Tier T0 of the gate: the same bits at every step. Pure.
#pragma once

#include <optional>
#include <string>

#include "reports/gate/loss_arms.h"
#include "reports/record/gate.h"

namespace rematch {

// The first step and tensor whose bits differ; nothing if those that both recorded are equal over
// the steps that both have.
struct BitDifference {
  int step = 0;
  std::string tensor;
};
std::optional<BitDifference> first_difference(const Steps& left, const Steps& right);

// Refused, not failed, where the reference does not repeat its own bits.
CheckRecord check_bitwise(const LossArm& candidate, const LossArm& reference);

}  // namespace rematch
