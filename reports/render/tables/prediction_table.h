// Predicted steps as a table for a terminal. A row shows the plan's peak, the phase of the peak,
// the kinds of tensors at the peak, and the executed ops.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "policies/trace/profile.h"
#include "reports/record/step_predictor.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// If a note says that a peak is incomplete, the table shows it with "at least". `words` are printed
// above the table and name the model, the optimizer and the rank.
std::string predictions_to_text(const std::string& words, const std::vector<PredictedStep>& steps,
                                std::size_t width);

// Returns a table of the stages of pipelines, one row for each plan and stage. Empty if no step has
// stages.
std::string stages_to_text(const std::vector<PredictedStep>& steps, std::size_t width);

// Returns a table of the collectives and step times of predicted steps, with a line that explains
// the columns. `profile` is the source of the step times; null if the steps have no times. Empty if
// there are neither collectives nor times.
std::string traffic_to_text(const std::vector<PredictedStep>& steps, const Profile* profile,
                            std::size_t width);

}  // namespace rematch
