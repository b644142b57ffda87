// The file in which somebody says what a sweep measures, and what it stands for: comparisons.
#pragma once

#include <string>
#include <vector>

#include "harness/sweep/comparison_plan.h"
#include "policies/base/json_fwd.h"

namespace rematch {

// `run`: words of `rematch run` that all comparisons share.
struct SweepFile {
  std::vector<std::string> run;
  std::vector<PlannedComparison> comparisons;  // without predictions; what came twice is one
  int num_duplicates = 0;                      // points that were asked for again
};

// Throws FormatError with the path in the file: unknown keys, models, axes and policies; a value of
// another kind than its axis takes; a shape that no model has; a skip that skips nothing.
SweepFile sweep_from_json(const Json& json);

// The value of a flag among words: "--steps 10", "--steps=10"; empty: it is not there.
std::string flag_among(const std::vector<std::string>& words, const std::string& flag);

}  // namespace rematch
