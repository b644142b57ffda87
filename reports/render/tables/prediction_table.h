// Predicted steps as a table for a terminal: peak, place, holders and executed ops of each plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/predict/step/step_range.h"
#include "policies/predict/step/traffic.h"
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

}  // namespace rematch
