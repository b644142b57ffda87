// Finds what a plan does with the parameters that blocks gather: keep them from forward to
// backward, or gather them again. Used only to describe plans.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/region/region.h"
#include "policies/trace/trace.h"

namespace rematch {

class GatheredParameters {
 public:
  // Keeps references to the plan and the trace, which must outlive this object. Throws
  // std::invalid_argument if blocks gather parameters and the plan was made for another model.
  GatheredParameters(const Plan& plan, const Trace& trace);

  // Returns whether an op of one of the plan's regions gathers parameters. `region` is an index
  // into the plan's regions, and `op` an index into the region's ops.
  bool is_gather(std::size_t region, std::size_t op) const;
  // Returns whether the plan keeps at least some of the block's gathered parameters until backward.
  bool are_held(const TracedBlock& block) const;
  // Returns whether the block is a region that drops only gathered parameters. Recompute of such a
  // block runs only gathers, waits and views.
  bool are_all_that_is_dropped(const TracedBlock& block);

 private:
  OpRange range_of(const TracedBlock& block) const;
  bool is_held(OpId gather) const;
  bool runs_gathers_alone(OpRange range, const RegionType& type) const;

  const Plan& plan_;
  const Trace& trace_;
  bool has_gathers_;
  // op ranges of the regions; empty if nothing gathers parameters
  std::vector<OpRange> ranges_;
  std::map<int, bool> runs_gathers_alone_;  // keyed by region type
};

}  // namespace rematch
