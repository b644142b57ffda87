// A report of many comparisons as a sweep: for each model, the axes along which its comparisons
// differ, and what each policy came to at each place. Data alone; pages draw it.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/record/report.h"
#include "reports/render/comparison.h"

namespace rematch {

// The result of one policy in one comparison. Ratios are to the reference: `none`, and `full` where
// `none` did not finish.
struct SweepCell {
  const ComparedPoint* compared = nullptr;  // null: the comparison does not have the policy
  std::optional<double> peak_ratio;
  std::optional<double> step_ratio;
  bool is_step_sure = true;  // the ratio is told from noise
};

// By what a sweep varies: "tokens", with its values in order, numbers by size.
struct SweepAxis {
  std::string name;
  std::vector<std::string> values;
};

// A comparison at its place.
struct SweepShape {
  const Comparison* comparison = nullptr;
  std::vector<std::size_t> place;  // its value's index on each axis
  const PointRecord* reference = nullptr;
  std::vector<SweepCell> cells;  // one for each policy of the model
};

// Pointers are into the report and its comparisons.
struct SweepModel {
  std::string heading;  // "wan_small on cpu"
  std::string common;   // what all of its comparisons have: "dim 256, float32, seed 1"
  // The one with most values first, the seed last. What follows from another axis is none.
  std::vector<SweepAxis> axes;
  std::vector<std::string> policies;  // with the schedule where the model has several
  std::vector<SweepShape> shapes;     // in the report's order
  std::vector<const UnmeasuredComparison*> unmeasured;
};

inline constexpr const char* kSeedAxis = "seed";

std::vector<SweepModel> sweep_models(const Report& report,
                                     const std::vector<Comparison>& comparisons);

// Some comparisons differ in their shape alone, or are missing.
bool is_sweep(const std::vector<SweepModel>& models);

// "tokens 8, batch 1"; the model's heading where nothing varies.
std::string shape_words(const SweepModel& model, const SweepShape& shape);
// Those of the model's axes that it is planned at.
std::string shape_words(const SweepModel& model, const UnmeasuredComparison& comparison);

}  // namespace rematch
