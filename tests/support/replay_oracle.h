// A second simulator of a region's backward, written as simply as possible: sets, fixpoints, and a
// full lookup of every value's lifetime at every moment. It is the oracle for policies/predict.
#pragma once

#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch::testing {

struct OracleReplay {
  std::vector<OpId> executed;
  std::vector<Bytes> curve;  // bytes in the same form as RegionSimulation::curve
  Bytes peak;
};

// No region of the trace may write to a storage from outside the region, or read the result of
// `empty` before a write to it.
OracleReplay replay_oracle(const Trace& trace, OpRange region, const RegionType& type,
                           Schedule schedule);

}  // namespace rematch::testing
