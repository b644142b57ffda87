// A second simulator of a region's backward, as dumb as can be: sets, fixpoints and the whole life
// of every value looked up at every moment. The oracle of policies/predict.
#pragma once

#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch::testing {

struct OracleReplay {
  std::vector<OpId> executed;
  std::vector<Bytes> curve;  // as RegionSimulation::curve
  Bytes peak;
};

// For traces in which no region writes to an outside storage or reads an unwritten `empty`.
OracleReplay replay_oracle(const Trace& trace, OpRange region, const RegionType& type,
                           Schedule schedule);

}  // namespace rematch::testing
