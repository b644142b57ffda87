// The two sides of a loss check. A side consists of the runs of a point. Measures the distance
// between runs, and explains why two sides cannot be compared. Pure.
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

// One side of a loss check: one point, run once or several times.
struct LossArm {
  std::vector<Steps> runs;  // all runs; the first is the point's own run
  std::string policy;
  bool deterministic = true;
  std::vector<std::string> unfinished;  // failed repeats, such as "ended oom: asked for 1 GiB"
  // Returns text for a step of a curve, such as "step 57, mine.csv:59:4". Empty for reports.
  std::function<std::string(std::size_t run, std::size_t step)> place;
  // The advice in messages on how to get more runs. If empty, messages give the default advice.
  std::string more_runs;
};

// Returns the largest difference between the losses at any step that both runs have. Infinite if a
// loss is not finite.
double largest_difference(const Steps& left, const Steps& right);

// Returns the largest difference between any two runs. Absent if there is only one run.
std::optional<double> largest_difference(const std::vector<Steps>& runs);

// Finds the nearest of `references` for each run of the arm. Returns the run with the largest
// distance to its nearest reference, and the step of that distance. `references` must not be empty.
struct FurthestRun {
  std::size_t run = 0;
  double difference = 0;
  std::size_t step = 0;
};
FurthestRun furthest_run(const LossArm& arm, const std::vector<Steps>& references);

// Returns text such as " (in repeat 2, the furthest of 4 runs)". For curves, the text is the file
// and line of the step. Empty for the only run of a report.
std::string among_runs(const FurthestRun& furthest, const LossArm& arm);

// Returns why the sides cannot be compared over all steps, or "" if they can.
std::string obstacle(const LossArm& candidate, const LossArm& reference);

// Returns text such as "; the candidate's last 6 steps have no counterpart" if the reference ends
// earlier, else "".
std::string unmatched_steps(const LossArm& candidate, const LossArm& reference);

// Returns text such as "ended oom: asked for 1 GiB".
std::string end_of(PointStatus status, const std::string& reason);

// Returns the first step whose loss is not finite, counted from 0. Absent if every loss is finite.
std::optional<int> first_step_not_finite(const Steps& steps);

// Returns text such as " in repeat 2". Returns "" for the first run, which is the point's own.
std::string in_repeat(std::size_t run);

// Returns a label that contains the policy and the identity, without schedule, machine and threads.
// Points with equal labels must have equal losses.
std::string training_label(const PointIdentity& identity, const std::string& policy);

class LossArms {
 public:
  explicit LossArms(const Report& report);  // the report must outlive this object

  // `point` must be an element of the report's points.
  LossArm arm_of(const PointRecord& point) const;

 private:
  Steps steps_of(const PointRecord& point) const;

  // keyed by the point's key
  std::unordered_map<std::string, std::vector<const RepeatRecord*>> repeats_;
  std::unordered_map<std::string, const PointRecord*> with_hashes_;  // keyed by training_label()
};

}  // namespace rematch
