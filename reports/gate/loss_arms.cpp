#include "reports/gate/loss_arms.h"

#include <algorithm>

namespace rematch {

std::string training_label(const PointIdentity& identity, const std::string& policy) {
  std::string label = identity.model + "|" + identity.data + "|" + std::to_string(identity.seed) +
                      "|" + identity.dtype + "|" + identity.optimizer;
  for (const auto& [name, value] : identity.dimensions) {
    label.append("|").append(name).append(" ").append(std::to_string(value));
  }
  return label.append("|").append(policy);
}

LossArms::LossArms(const Report& report) {
  for (const RepeatRecord& repeat : report.repeats) repeats_[repeat.key].push_back(&repeat);
  for (const PointRecord& point : report.points) {
    if (point.steps.empty() || point.steps.front().gradient_hashes.empty()) continue;
    with_hashes_.emplace(training_label(point.identity, point.policy), &point);
  }
}

LossArm LossArms::arm_of(const PointRecord& point) const {
  LossArm arm{{steps_of(point)}, point.policy, point.identity.deterministic};
  if (repeats_.empty()) return arm;
  const auto found = repeats_.find(point_key(point.identity));
  if (found == repeats_.end()) return arm;
  for (const RepeatRecord* repeat : found->second) {
    const bool same = repeat->policy == point.policy && repeat->status == PointStatus::kOk;
    if (same) arm.runs.push_back(repeat->steps);
  }
  return arm;
}

// A point whose gradients have its reference's bits has their hashes as well.
Steps LossArms::steps_of(const PointRecord& point) const {
  Steps steps = point.steps;
  const bool has_own = steps.empty() || !steps.front().gradient_hashes.empty();
  if (has_own || !point.parity || point.parity->gradient_bits_equal != true) return steps;
  const auto found = with_hashes_.find(training_label(point.identity, point.parity->reference));
  if (found == with_hashes_.end()) return steps;
  const Steps& reference = found->second->steps;
  const std::size_t compared =
      std::min({steps.size(), reference.size(),
                static_cast<std::size_t>(std::max(point.parity->compared_steps, 0))});
  for (std::size_t step = 0; step < compared; ++step) {
    steps[step].gradient_hashes = reference[step].gradient_hashes;
  }
  return steps;
}

}  // namespace rematch
