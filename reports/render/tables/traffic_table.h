// The exchanges of predicted steps with other ranks, and how long steps take if times are known.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "policies/trace/profile.h"
#include "reports/render/tables/prediction_table.h"

namespace rematch {

// A table with a row for each step, and a line that says what its columns are. `profile` is where
// the steps' times are from; null: they have none. Empty if they have neither collectives nor
// times.
std::string traffic_to_text(const std::vector<PredictedStep>& steps, const Profile* profile,
                            std::size_t width);

}  // namespace rematch
