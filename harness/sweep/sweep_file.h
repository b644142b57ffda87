// The file in which a user states what a sweep should measure. It is expanded into comparisons.
#pragma once

#include <string>
#include <vector>

#include "harness/sweep/comparison_plan.h"
#include "policies/base/json_fwd.h"

namespace rematch {

// `run` holds the arguments of `rematch run` that all comparisons share.
struct SweepFile {
  std::vector<std::string> run;
  std::vector<PlannedComparison>
      comparisons;         // comparisons without predictions; duplicates are merged
  int num_duplicates = 0;  // number of points that were requested more than once
};

// Throws FormatError, with the path in the file, for unknown keys, models, axes and policies. Also
// throws FormatError for a value of the wrong kind, for a shape that no model has, and for a skip
// that matches no combination.
SweepFile sweep_from_json(const Json& json);

}  // namespace rematch
