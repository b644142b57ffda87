// The output of rematch predict, wherever its steps were predicted.
#pragma once

#include <optional>
#include <vector>

#include "harness/cli/files/input_files.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"
#include "reports/render/tables/prediction_table.h"

namespace rematch {

// A table, or with `as_json` a list. `profile`: where times are from; nothing: there are none.
void print_predictions(const std::vector<PredictedStep>& steps, const Trace& trace,
                       const std::optional<Profile>& profile, const FrontSetting& setting,
                       bool as_json);

}  // namespace rematch
