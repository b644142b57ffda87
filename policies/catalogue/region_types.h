// Makes the types of placed regions.
#pragma once

#include <functional>
#include <vector>

#include "policies/catalogue/place_regions.h"
#include "policies/catalogue/treat_ops.h"
#include "policies/plan/plan.h"
#include "policies/plan/policy.h"
#include "policies/predict/region/region.h"
#include "policies/predict/region/trace_index.h"

namespace rematch {

// Makes region types. Regions with the same behaviour share one recompute order, which is chosen
// once. The constructor's arguments must outlive this object.
class RegionTypeMaker {
 public:
  RegionTypeMaker(const Policy& policy, const TraceIndex& index, const OpTreater& treater)
      : policy_(policy), index_(index), treater_(treater) {}

  // `adjust` may change the treatments that the policy chose.
  using Adjust = std::function<void(std::vector<PlannedOp>& ops)>;
  RegionType make(const PlacedRegion& region, const Adjust& adjust = {});

 private:
  struct Known {
    RegionGraph graph;
    RegionType type;
  };
  const Policy& policy_;
  const TraceIndex& index_;
  const OpTreater& treater_;
  std::vector<Known> known_;
};

}  // namespace rematch
