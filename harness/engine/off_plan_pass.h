// A forward pass through a region, with ops that differ from the plan. See Note [Leaving the plan]
// (recording.h).
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "harness/engine/prepared_plan.h"
#include "policies/replay/op_alignment.h"

namespace rematch {

class OffPlanPass {
 public:
  // The first `num_ran` ops of the pass were as planned, and the next op was not. `difference`
  // describes that op in one line.
  OffPlanPass(const PreparedRegionType& type, std::size_t num_ran, std::string difference)
      : type_(type), alignment_(type.ids, num_ran), difference_(std::move(difference)) {}

  // Returns whether to keep the outputs of the next op, and where.
  Keep keep_next(const OpFacts& facts);

  // Call this when a layer of the region begins. `distance` is 0 for the region's first layer, 1
  // for the next one.
  void begin_layer(int distance) { alignment_.skip_to(type_.first_op_of(distance)); }

  // Returns the counts to add to DepartureCounts at the end of the pass.
  Departures summary(const std::string& region, const Record& record) const;

 private:
  const PreparedRegionType& type_;
  OpAlignment alignment_;
  std::string difference_;
};

}  // namespace rematch
