// Adds a point's own parity, judged where it was measured, to what its recorded steps say.
// Pure.
#pragma once

#include <optional>

#include "reports/record/gate.h"
#include "reports/record/point.h"

namespace rematch {

// Equal losses are a proof only if every parameter got a gradient. Nothing: each did, or the point
// did not finish.
std::optional<CheckRecord> check_proof(const PointRecord& point);

// Fails a check of bits that passed where the point's parity with `reference`, or with what
// `reference` itself is equal to, says otherwise: not every bit is kept in the steps.
void hold_to_parity(CheckRecord& check, const PointRecord& point, const PointRecord& reference);

}  // namespace rematch
