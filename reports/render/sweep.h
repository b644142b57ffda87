// Arranges a report of many comparisons as a sweep. For each model, finds the axes along which
// comparisons differ, and collects the result of each policy in each comparison.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/record/report.h"
#include "reports/render/comparison.h"

namespace rematch {

// The result of one policy in one comparison. Ratios are relative to the reference: `none`, or
// `full` if `none` did not finish.
struct SweepCell {
  const ComparedPoint* compared = nullptr;  // null if the comparison does not contain the policy
  std::optional<double> peak_ratio;
  std::optional<double> step_ratio;
  bool is_step_sure = true;  // false if the ratio is within noise
};

// A property that the sweep varies, such as "tokens", with its sorted values.
struct SweepAxis {
  std::string name;
  std::vector<std::string> values;
};

// A comparison and its position on each axis of the sweep.
struct SweepShape {
  const PolicyComparison* comparison = nullptr;
  std::vector<std::size_t> place;  // index of the comparison's value on each axis
  const PointRecord* reference = nullptr;
  std::vector<SweepCell> cells;  // one for each policy of the model
};

// One model of a sweep. The pointers point into the report and its comparisons.
struct SweepModel {
  std::string heading;  // a heading such as "wan_small on cpu"
  std::string common;   // properties that all comparisons share: "dim 256, float32, seed 1"
  // The axes, sorted by number of values, the largest first; the seed is last. A property that
  // another property determines is not an axis.
  std::vector<SweepAxis> axes;
  std::vector<std::string> policies;  // names, with schedules where a policy has several
  std::vector<SweepShape> shapes;     // in the order of the report
  std::vector<const UnmeasuredComparison*> unmeasured;
};

inline constexpr const char* kSeedAxis = "seed";

std::vector<SweepModel> sweep_models(const Report& report,
                                     const std::vector<PolicyComparison>& comparisons);

// True if a model has several comparisons, or a comparison that was not measured.
bool is_sweep(const std::vector<SweepModel>& models);

// Both functions return text such as "tokens 8, batch 1"; the model's heading if nothing varies.
std::string shape_words(const SweepModel& model, const SweepShape& shape);
std::string shape_words(const SweepModel& model, const UnmeasuredComparison& comparison);

}  // namespace rematch
