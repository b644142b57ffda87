// Tier T2 of the gate: mean losses that differ by less than a margin, for long runs, other devices
// and other numbers of ranks. Pure.
#pragma once

#include <optional>

#include "reports/gate/loss_arms.h"
#include "reports/record/gate.h"

namespace rematch {

// Two one-sided tests at 5 % on the runs' mean losses over the last `window_steps` (half of the
// steps if absent), four runs an arm at least. The margin is the user's or four standard
// deviations of a run, whichever is wider.
CheckRecord check_equivalence(const LossArm& candidate, const LossArm& reference,
                              std::optional<double> margin, std::optional<int> window_steps);

}  // namespace rematch
