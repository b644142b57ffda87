// Points of a report as sides of a loss check: a point's own run, its repeats, and the hashes of
// its gradients where the report holds them at its reference alone. Pure.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "reports/gate/loss_checks.h"
#include "reports/record/report.h"

namespace rematch {

// What must be equal for losses to be: everything but how the plan, the machine and its threads go
// about it; and the policy that is looked for.
std::string training_label(const PointIdentity& identity, const std::string& policy);

class LossArms {
 public:
  explicit LossArms(const Report& report);  // which must live as long

  // `point` is one of the report's.
  LossArm arm_of(const PointRecord& point) const;

 private:
  Steps steps_of(const PointRecord& point) const;

  std::unordered_map<std::string, std::vector<const RepeatRecord*>> repeats_;  // by key
  std::unordered_map<std::string, const PointRecord*> with_hashes_;            // by training
};

}  // namespace rematch
