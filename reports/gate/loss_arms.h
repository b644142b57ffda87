// The sides of a loss check: a point's own run, its repeats, and the hashes of its gradients where
// the report holds them at its reference alone; how far runs are apart, and what keeps two sides
// from being compared. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "reports/record/report.h"

namespace rematch {

using Steps = std::vector<StepRecord>;

// One side of a loss check: the same point, run once or several times.
struct LossArm {
  std::vector<Steps> runs;  // the point's own first
  std::string policy;
  bool deterministic = true;
  std::vector<std::string> unfinished;  // repeats: "ended oom: asked for 1 GiB"
  // Names a place in a curve, which no report names: "step 57, mine.csv:59:4".
  std::function<std::string(std::size_t run, std::size_t step)> place;
  std::string more_runs;
};

// The largest difference of the loss at any step that both have; infinite where a loss is not
// finite.
double largest_difference(const Steps& left, const Steps& right);

// The same between any two runs; absent: one run.
std::optional<double> largest_difference(const std::vector<Steps>& runs);

// The run of an arm that is furthest from whichever of `references`, one at least, is nearest to
// it, and the step at which those two differ most.
struct FurthestRun {
  std::size_t run = 0;
  double difference = 0;
  std::size_t step = 0;
};
FurthestRun furthest_run(const LossArm& arm, const std::vector<Steps>& references);

// " (in repeat 2, the furthest of 4 runs)"; of curves the place of the step. Empty for the one run
// of a report.
std::string among_runs(const FurthestRun& furthest, const LossArm& arm);

// Why there is nothing to compare over all steps; empty: there is.
std::string obstacle(const LossArm& candidate, const LossArm& reference);

// "; its last 6 steps have no counterpart" in the reference, which ends earlier; empty: it does
// not.
std::string unmatched_steps(const LossArm& candidate, const LossArm& reference);

// "ended oom: asked for 1 GiB"
std::string end_of(PointStatus status, const std::string& reason);

// From 0; absent: every loss is finite.
std::optional<int> first_step_not_finite(const Steps& steps);

// " in repeat 2"; empty for the point's own run, which is the first.
std::string in_repeat(std::size_t run);

// The fields that must be equal for losses to be: everything but how the plan, the machine and its
// threads go about it; and the policy that is looked for.
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
