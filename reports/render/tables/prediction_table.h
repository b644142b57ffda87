// Predicted steps as a table for a terminal: peak, place, holders and executed ops of each plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/predict/step/counts.h"
#include "policies/predict/step/step_range.h"
#include "policies/trace/profile.h"
#include "reports/record/point.h"
#include "reports/render/tables/grid.h"

namespace rematch {

struct PredictedStep {
  std::string policy;
  std::string schedule;  // empty: the plan has no region, so it has none
  MemoryRecord memory;
  // Executed in forward, and again in recompute.
  std::int64_t attention = 0;
  std::int64_t attention_again = 0;
  std::int64_t matmul = 0;
  std::int64_t matmul_again = 0;
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
