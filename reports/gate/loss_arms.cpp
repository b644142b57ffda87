#include "reports/gate/loss_arms.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rematch {
namespace {

struct StepDifference {
  double difference = 0;
  std::size_t step = 0;
};

StepDifference furthest_step(const Steps& left, const Steps& right) {
  StepDifference furthest;
  for (std::size_t step = 0; step < std::min(left.size(), right.size()); ++step) {
    if (!left[step].loss || !right[step].loss) {
      return {std::numeric_limits<double>::infinity(), step};
    }
    const double difference = std::abs(*left[step].loss - *right[step].loss);
    if (difference > furthest.difference) furthest = {difference, step};
  }
  return furthest;
}

}  // namespace

double largest_difference(const Steps& left, const Steps& right) {
  return furthest_step(left, right).difference;
}

std::optional<double> largest_difference(const std::vector<Steps>& runs) {
  if (runs.size() < 2) return std::nullopt;
  double largest = 0;
  for (std::size_t left = 0; left < runs.size(); ++left) {
    for (std::size_t right = left + 1; right < runs.size(); ++right) {
      largest = std::max(largest, largest_difference(runs[left], runs[right]));
    }
  }
  return largest;
}

FurthestRun furthest_run(const LossArm& arm, const std::vector<Steps>& references) {
  FurthestRun furthest;
  for (std::size_t run = 0; run < arm.runs.size(); ++run) {
    std::optional<StepDifference> nearest;
    for (const Steps& reference : references) {
      const StepDifference own = furthest_step(arm.runs[run], reference);
      if (!nearest || own.difference < nearest->difference) nearest = own;
    }
    if (nearest && nearest->difference > furthest.difference) {
      furthest = {run, nearest->difference, nearest->step};
    }
  }
  return furthest;
}

std::string among_runs(const FurthestRun& furthest, const LossArm& arm) {
  const std::size_t run = furthest.run;
  if (arm.place) return furthest.difference == 0 ? "" : " (" + arm.place(run, furthest.step) + ")";
  if (arm.runs.size() < 2) return "";
  return (run == 0 ? " (in the point's own run" : " (in repeat " + std::to_string(run)) +
         ", the furthest of " + std::to_string(arm.runs.size()) + " runs)";
}

std::string obstacle(const LossArm& candidate, const LossArm& reference) {
  if (reference.runs.empty() || reference.runs.front().empty()) {
    return "the reference has no recorded steps";
  }
  for (const Steps& run : reference.runs) {
    if (first_step_not_finite(run)) return "a loss of the reference is not finite";
  }
  const std::size_t wanted = reference.runs.front().size();
  for (const LossArm* arm : {&candidate, &reference}) {
    for (const Steps& run : arm->runs) {
      if (run.size() >= wanted) continue;
      return "a run of " + arm->policy + " has " + std::to_string(run.size()) + " of " +
             std::to_string(wanted) + " steps; use the same --steps";
    }
  }
  return "";
}

std::string unmatched_steps(const LossArm& candidate, const LossArm& reference) {
  const std::size_t steps = reference.runs.front().size();
  std::size_t longest = 0;
  for (const Steps& run : candidate.runs) longest = std::max(longest, run.size());
  if (longest <= steps || steps == 0) return "";
  const std::string rest = std::to_string(longest - steps);
  return longest - steps == 1 ? "; the candidate's last step has no counterpart"
                              : "; the candidate's last " + rest + " steps have no counterpart";
}

std::string end_of(PointStatus status, const std::string& reason) {
  return "ended " + std::string(to_string(status)) + (reason.empty() ? "" : ": " + reason);
}

std::optional<int> first_step_not_finite(const Steps& steps) {
  const auto found =
      std::find_if(steps.begin(), steps.end(), [](const StepRecord& step) { return !step.loss; });
  if (found == steps.end()) return std::nullopt;
  return static_cast<int>(found - steps.begin());
}

std::string in_repeat(std::size_t run) {
  return run == 0 ? "" : " in repeat " + std::to_string(run);
}

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
  LossArm arm{{steps_of(point)}, point.policy, point.identity.deterministic, {}};
  if (repeats_.empty()) return arm;
  const auto found = repeats_.find(point_key(point.identity));
  if (found == repeats_.end()) return arm;
  for (const RepeatRecord* repeat : found->second) {
    if (repeat->policy != point.policy) continue;
    if (repeat->status == PointStatus::kOk) {
      arm.runs.push_back(repeat->steps);
    } else {
      arm.unfinished.push_back(end_of(repeat->status, repeat->reason));
    }
  }
  return arm;
}

// A report stores no gradient hashes for a point whose gradients equal the reference's. In this
// case, copies the reference's hashes.
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
