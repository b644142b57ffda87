// Predicted steps as a table for a terminal: peak, place, holders and executed ops of each plan.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/predict/step/counts.h"
#include "policies/predict/step/step_range.h"
#include "policies/trace/profile.h"
#include "reports/record/point.h"
#include "reports/render/tables/grid.h"

namespace rematch {

struct PredictedStep {
  std::string policy;
  Schedule schedule = Schedule::kOnDemand;
  bool has_regions = false;  // without one there is no schedule to speak of
  std::string plan_sha256;
  CountsRecord counts;  // of one step
  MemoryRecord memory;
  Traffic traffic;
  std::optional<StepRange> range;  // with times
};

// A peak that is known to leave something out, as its note says, is "at least" so much. `words`
// stand above the table: which model, optimizer and rank.
std::string predictions_to_text(const std::string& words, const std::vector<PredictedStep>& steps,
                                std::size_t width);

// The exchanges of predicted steps with other ranks, and how long steps take if times are known.

// A table with a row for each step, and a line that says what its columns are. `profile` is where
// the steps' times are from; null: they have none. Empty if they have neither collectives nor
// times.
std::string traffic_to_text(const std::vector<PredictedStep>& steps, const Profile* profile,
                            std::size_t width);

}  // namespace rematch
