// What a plan does with the parameters that blocks gather: held from forward to backward, or
// gathered again. For words on plans; nothing is decided here.
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
  // References must outlive it. Throws std::invalid_argument if the plan was made for another
  // model, and blocks of this one gather parameters.
  GatheredParameters(const Plan& plan, const Trace& trace);

  // Whether an op of a region of the plan, both by index, gathers parameters.
  bool is_gather(std::size_t region, std::size_t op) const;
  // Whether the block gathers parameters that are held until backward, all or some.
  bool are_held(const TracedBlock& block) const;
  // Whether the block is a region that holds everything else: all that its backward runs again are
  // gathers and views.
  bool are_all_that_is_dropped(const TracedBlock& block);

 private:
  OpRange range_of(const TracedBlock& block) const;
  bool is_held(OpId gather) const;
  bool runs_gathers_alone(OpRange range, const RegionType& type) const;

  const Plan& plan_;
  const Trace& trace_;
  bool has_gathers_;
  std::vector<OpRange> ranges_;             // of the regions, if there are gathers
  std::map<int, bool> runs_gathers_alone_;  // by type
};

}  // namespace rematch
